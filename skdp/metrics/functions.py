"""The functions: a model and labelled rows in, released scores and their report out."""

from typing import Unpack

from skdp._docs import document
from skdp.metrics.evaluation import Evaluation
from skdp.metrics.fits import EvaluationFit, TwoClassTable
from skdp.metrics.many_classes import ManyClassTables
from skdp.metrics.models import classes_of, kind_of
from skdp.statistics.calls import Budget, takes_budget


@document()
@takes_budget()
def evaluate(
    model: object,
    X: object,
    y: object = None,
    *,
    bins: object = "auto",
    threshold: float | None = None,
    ovr: bool = False,
    y_bounds: object = None,
    groups: object = None,
    **budget: Unpack[Budget],
) -> Evaluation:
    """Release how good a model is on labelled rows: all scores and curves for one charge.

    Parameters
    ----------
    model : fitted classifier or regressor
        Released, or fitted to other people: the rows of ``X`` and ``y`` are protected here, not the model's
        training rows. Labels come from ``model.classes_``, and the second class is the positive one. The model
        must score each row by itself.
    X : array-like, CSR matrix, data frame, Blocks or Dask collection of shape (n_samples, n_features)
        Rows that the model was not fitted to, as the model takes them. Not changed.
    y : array-like of shape (n_samples,), default=None
        Their labels or targets; not beside `Blocks`, which hold them. A label that is missing or unknown to the
        model counts as the first class; a target must be finite.
    bins : "auto", int or array-like of float, default="auto"
        The public bins of the scores of a model of two classes. An even number is bins of equal width on the logit
        scale; "auto" takes 64, or 128 and 256 where the number of units times mu passes 2,000 and 8,000. An
        array has inner edges: probabilities, or values of ``decision_function`` for a model without
        ``predict_proba``, which needs them. The threshold is added to them.
    threshold : float, default=None
        From which score on a row is predicted to be of the second class. None is the threshold of ``predict``: .5,
        or 0 for a ``decision_function``, or the model's own (`skdp.model_selection.DPTunedThresholdClassifier`).
        It becomes an edge of the bins, so its scores are not rounded. Bins that are not given as edges are laid
        around it, so that its accuracy has the least noise.
    ovr : bool, default=False
        For three or more classes: also release a table of each class against the rest, which gives areas under ROC
        curves and makes all other noise larger.
    y_bounds : tuple of (low, high), default=None
        For a regressor: public numbers that targets are clipped to. None releases a window of the targets for 10 %
        of the budget (of mu^2), or 20 % where they are far from 0. Residuals are clipped to a window that is
        released for another 10 %. Scores are computed from clipped numbers, and the result has the windows.
    {unit}
        A group counts as one, the mean of its rows: scores weigh groups alike, not rows.

    Returns
    -------
    Evaluation
        A mapping from names of scores to `ReleasedScore`, with curves, plots and ``privacy_``.

    Raises
    ------
    ValueError, TypeError
        If a parameter or the data are not as described, or if the model raised; its message is withheld. No budget
        is spent.
    PrivacyBudgetExceeded
        If the accountant does not hold (epsilon, delta). Nothing was read.
    """
    kind = kind_of(model)
    if kind == "classifier" and len(classes_of(model)) == 2:
        _only("a model of two classes", ovr=ovr is not False, y_bounds=y_bounds is not None)
        fit: EvaluationFit = TwoClassTable(bins=bins, threshold=threshold, model=model, **budget)
    elif kind == "classifier":
        _only(
            "a model of three or more classes", bins=bins != "auto", threshold=threshold is not None,
            y_bounds=y_bounds is not None,
        )  # fmt: skip
        fit = ManyClassTables(ovr=ovr, model=model, **budget)
    else:
        from skdp.metrics.regression_fits import ResidualMoments

        _only("a regressor", bins=bins != "auto", threshold=threshold is not None, ovr=ovr is not False)
        fit = ResidualMoments(y_bounds=y_bounds, model=model, **budget)
    return fit.fit(X, y, groups=groups).evaluation()


def _only(what: str, **given: bool) -> None:
    """Refuse parameters that this kind of model does not take."""
    for name, is_given in given.items():
        if is_given:
            raise ValueError(f"{name} is not used for {what}: leave it out")
