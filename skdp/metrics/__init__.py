"""Released scores of models on labelled rows, each with its noise, its intervals and its privacy report.

They judge a released model on people that it was not fitted to, without publishing any of them.
"""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "Evaluation": "skdp.metrics.evaluation",
        "ReleasedScore": "skdp.metrics.released_score",
        "accuracy_score": "skdp.metrics.label_functions",
        "balanced_accuracy_score": "skdp.metrics.label_functions",
        "brier_score_loss": "skdp.metrics.label_functions",
        "confusion_matrix": "skdp.metrics.label_functions",
        "evaluate": "skdp.metrics.functions",
        "log_loss": "skdp.metrics.label_functions",
        "mean_absolute_error": "skdp.metrics.number_functions",
        "mean_squared_error": "skdp.metrics.number_functions",
        "r2_score": "skdp.metrics.number_functions",
        "roc_auc_score": "skdp.metrics.label_functions",
    },
)
