"""Scores of given predictions of numbers, with scikit-learn's names and order of arguments."""

from typing import Any, Unpack

from skdp._docs import document
from skdp.base.each_block import paired
from skdp.metrics.regression_fits import NumberScore
from skdp.metrics.released_score import ReleasedScore
from skdp.statistics.calls import Budget, takes_budget

REFUSED = {
    "sample_weight": "each record (or group) counts as one, because the noise is drawn for this bound",
    "multioutput": "a release is about one column of targets: call the function for each of several",
    "squared": "take the root of the released value and of the ends of its intervals, which costs nothing",
    "force_finite": "values are always finite, and an interval may not be",
}


@document()
@takes_budget(**REFUSED)
def r2_score(
    y_true: object, y_pred: object, *, y_bounds: object = None, groups: object = None, **budget: Unpack[Budget]
) -> ReleasedScore:
    """Release the share of the targets' variance that predictions explain.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Targets, finite numbers. Protected, and not changed.
    y_pred : array-like of shape (n_samples,)
        Predictions, finite numbers, each made from its own row by a model that is released, or was fitted to other
        people. Protected, and not changed.
    y_bounds : tuple of (low, high), default=None
        Public numbers that targets are clipped to. None releases a window of the targets for 10 % of the budget
        (of mu^2), or 20 % where they are far from 0. Residuals are clipped to a window that is released for
        another 10 %.
    {unit}
        A group counts as one: the mean of its rows.

    Returns
    -------
    ReleasedScore
        At most 1, computed from clipped targets and residuals; ``bounds`` is the targets' window. An interval's
        lower end is ``-inf`` where the noise does not show that targets differ.

    Raises
    ------
    ValueError, TypeError
        If a parameter or the data are not as described. No budget is spent.
    PrivacyBudgetExceeded
        If the accountant does not hold (epsilon, delta). Nothing was read.

    See Also
    --------
    skdp.metrics.evaluate : All scores of a model for one charge.

    Notes
    -----
    **Privacy.** With u and v the target and the residual in units of their windows, clipped to [-1, 1], each unit
    adds (u / 2, u^2, v^2): the sums have l2 sensitivity 1.512 under replace-one, and 1.5 under zero-out and
    add-remove. They are released with Gaussian noise, after noisy counts that choose the windows. Then 4 % of the
    budget (of mu^2) release the sum of squares that the sampling variance follows from. 5 % release the number of
    units first, where it is private: under add-remove, and with ``n_public`` under zero-out. Time and memory are
    not protected.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import r2_score
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.normal(size=20_000)
    >>> y_true = y_pred + rng.normal(size=20_000)
    >>> found = r2_score(y_true, y_pred, epsilon=1.0)
    >>> bool(0.4 < found.value < 0.6)
    True
    """
    return _released("r2", y_true, y_pred, groups, y_bounds=y_bounds, **budget)


@document(r2_score)
@takes_budget(**REFUSED)
def mean_squared_error(
    y_true: object, y_pred: object, *, y_bounds: object = None, groups: object = None, **budget: Unpack[Budget]
) -> ReleasedScore:
    """Release the mean of the squared differences of targets and predictions.

    Parameters
    ----------
    y_bounds : tuple of (low, high), default=None
        Public numbers between which targets and useful predictions lie: residuals are clipped to their
        distance, or to a smaller window that is released for 10 % of the budget (of mu^2). None sets no limit
        to that window.

    Returns
    -------
    ReleasedScore
        In squared units of the targets, computed from clipped residuals; ``bounds`` is their window.

    Notes
    -----
    **Privacy.** With v the residual in units of its window, clipped to [-1, 1], each unit adds v^2, and the sum
    has sensitivity 1 under all adjacencies. It is released with Gaussian noise, after noisy counts that choose the
    window. Then 4 % of the budget (of mu^2) release the sum of v^4, which the sampling variance follows from. 5 %
    release the number of units first, where it is private: under add-remove, and with ``n_public`` under zero-out.
    Time and memory are not protected.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import mean_squared_error
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.normal(size=20_000)
    >>> y_true = y_pred + rng.normal(size=20_000)
    >>> found = mean_squared_error(y_true, y_pred, epsilon=1.0)
    >>> bool(0.9 < found.value < 1.1)
    True
    """
    return _released("mean_squared_error", y_true, y_pred, groups, y_bounds=y_bounds, **budget)


@document(mean_squared_error)
@takes_budget(**REFUSED)
def mean_absolute_error(
    y_true: object, y_pred: object, *, y_bounds: object = None, groups: object = None, **budget: Unpack[Budget]
) -> ReleasedScore:
    """Release the mean of the magnitudes of targets less predictions.

    Returns
    -------
    ReleasedScore
        In units of the targets, computed from clipped residuals; ``bounds`` is their window.

    Notes
    -----
    **Privacy.** With v the residual in units of its window, clipped to [-1, 1], each unit adds |v|, and the sum
    has sensitivity 1 under all adjacencies. It is released with Gaussian noise, after noisy counts that choose the
    window. Then 4 % of the budget (of mu^2) release the sum of v^2, which the sampling variance follows from. 5 %
    release the number of units first, where it is private: under add-remove, and with ``n_public`` under zero-out.
    Time and memory are not protected.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import mean_absolute_error
    >>> rng = np.random.default_rng(0)
    >>> y_pred = rng.normal(size=20_000)
    >>> y_true = y_pred + rng.normal(size=20_000)
    >>> found = mean_absolute_error(y_true, y_pred, epsilon=1.0)
    >>> bool(0.75 < found.value < 0.85)
    True
    """
    return _released("mean_absolute_error", y_true, y_pred, groups, y_bounds=y_bounds, **budget)


def _released(score: str, y_true: object, y_pred: object, groups: object, **terms: Any) -> ReleasedScore:
    return NumberScore(score=score, **terms).fit(*paired(y_pred, y_true), groups=groups).released()
