"""Released scores of models on labelled rows, each with its noise, its intervals and its privacy report.

They judge a released model on people that it was not fitted to, without publishing any of them.
"""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "Evaluation": "skdp.metrics.evaluation",
        "ReleasedScore": "skdp.metrics.released_score",
        "evaluate": "skdp.metrics.functions",
        "mean_absolute_error": "skdp.metrics.number_functions",
        "mean_squared_error": "skdp.metrics.number_functions",
        "r2_score": "skdp.metrics.number_functions",
    },
)
