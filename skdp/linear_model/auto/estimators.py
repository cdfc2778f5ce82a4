"""`DPLogisticRegression` and `DPLinearRegression`; the automatic fit is in `fit`."""

from skdp._docs import document
from skdp.base.declare import changed, fitted, parameter
from skdp.base.fit import PrivateFit
from skdp.base.kinds import described
from skdp.fitting.targets import LabelModel, NumberModel, Problem
from skdp.linear_model.auto.fit import AutoFit
from skdp.linear_model.auto.public_bounds import check_target_bounds

# Parameters of the additive models, too.
CLASS_WEIGHT: object = changed(
    kind=described("dict of {label: weight}"),
    text="""Public numbers > 0; a label that is left out weighs 1. Each class counts as if it were that much
    more frequent: the logarithm of its weight is added to its intercept. It costs no budget.""",
)
Y_BOUNDS: object = parameter(
    described("tuple of (float, float)", check_target_bounds),
    """Public ends (low, high) of the targets: no range of y is searched for, and `predict` is cut to them. It
    helps where records are few. None: the range is released. Do not read them from the data.""",
    default=None,
    releases="unless default",
)


# At the default C, regressions draw the random streams of versions that had no C.
C_OF_NUMBERS = changed(releases="unless default")


def check_l1_ratio(name: str, value: object) -> None:
    """Refuse an l1 penalty, which no method has."""
    if value not in (0, None):
        raise ValueError(
            f"{name} must be 0, got {value!r}: for a model with a bound on its l1 norm use "
            "DPFrankWolfeClassifier(radius=...), for a number of coefficients n_nonzero_coefs="
        )


@document()
class DPLogisticRegression(AutoFit, LabelModel, PrivateFit[Problem]):
    """Logistic or softmax regression that is differentially private, for any table.

    Nothing is asked about the data: no bounds, no scaling, no tuning. Columns are brought to comparable scales by
    released numbers, values far outside of their column's released window count as its end, and a missing value
    (NaN) as its centre. Parameters have the names of `sklearn.linear_model.LogisticRegression`.

    {guarantee}

    See Also
    --------
    DPLinearRegression : The same for numbers as targets.
    DPIGHTClassifier : Sparse models, with all parameters of the method.
    DPFrankWolfeClassifier : A bound on the l1 norm.

    Notes
    -----
    **Privacy.** Every release is a sum with Gaussian noise ([Balle2018]_); shares of the budget are shares of
    mu^2.

    * Magnitudes of the columns without ``feature_bounds``: counts of the records by power-of-two bins of each
      column. They move by sqrt(2 d), or by sqrt(d). How many values are not missing: sqrt(d), or sqrt(d) / 2.
    * Values are then cut at the ends of their column's window, cell by cell: a record stays a function of itself.
    * The second moments of the rows (x / half_width, 1), scaled down to norm R: they give means and deviations.
      They move by sqrt(2) R^2 in Frobenius norm, or by R^2.
    * For columns far from 0: histograms of d columns in narrower and narrower windows, each sqrt(2 d), or sqrt(d).
    * Class counts: replacing a record moves them by sqrt(2), a missing one by 1.
    * The Gram matrix of standardized rows that are scaled down to norm C: it moves by sqrt(2) C^2 in Frobenius
      norm, or by C^2, because both contributions are positive semidefinite with trace at most C^2.
    * Gradients of standardized rows, clipped to l2 norm G: the mean moves by at most 2 G / n, or by G / n.
    * The mean of (probability - label), whose norm is at most 1 for two classes and sqrt(2) for more: it moves by
      twice that over n, or by once. Where n mu is at least 700 and (d + 1)^1.5 / (n mu) at most .2, the scores are
      recalibrated instead, by one slope and an intercept for each class. Counts of records find the range of the
      scores: K counts move by sqrt(K) or sqrt(K) / 2, one of norms by 1 or 1/2. The sums of the rounds,
      of (probability - label), its product with the scores in a ball of radius 1 and the curvature, have norms
      that are bounded without a clip.

    The first number of a pair holds under replace-one, the second under zero-out and add-remove. A group
    contributes the mean over its rows to each of them. Earlier releases decide windows, scales and clip norms of
    later ones, which Gaussian DP allows. Solving, shrinking and the choice by ``C="auto"`` are post-processing:
    each C has the same releases with the same noise; later gradients are taken at other points.

    {privacy.unprotected}

    References
    ----------
    .. [Balle2018]

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DPLogisticRegression(epsilon=4.0, classes=(0, 1)).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), model.solver_
    (True, 'moments')
    """

    class_weight = CLASS_WEIGHT
    l1_ratio: float | None = parameter(
        described("float", check_l1_ratio),
        "Only 0. For an l1 constraint use `DPFrankWolfeClassifier`.",
        default=0.0,
    )
    n_iter_: int = fitted("int", "Number of gradients that were released.")


@document(DPLogisticRegression)
class DPLinearRegression(AutoFit, NumberModel, PrivateFit[Problem]):
    """Linear regression that is differentially private, for any table.

    Nothing is asked about the data: no bounds, no scaling, no tuning. Columns and targets are brought to
    comparable scales by released numbers, values far outside of their column's released window count as its end,
    and a missing value (NaN) as its centre. Parameters have the names of `sklearn.linear_model.LinearRegression`.

    {guarantee}

    See Also
    --------
    DPLogisticRegression : The same for classes.
    DPIGHTRegressor : Sparse models, with all parameters of the method.
    DPAdaSSPRegressor : Where public bounds are known.

    Notes
    -----
    **Privacy.** Every release is a sum with Gaussian noise ([Balle2018]_); shares of the budget are shares of
    mu^2.

    * Magnitudes of the columns without ``feature_bounds``: counts of the records by power-of-two bins of each
      column. They move by sqrt(2 d), or by sqrt(d). How many values are not missing: sqrt(d), or sqrt(d) / 2.
    * Values are then cut at the ends of their column's window, cell by cell: a record stays a function of itself.
    * The second moments of the rows (x / half_width, 1), scaled down to norm R: they give means and deviations.
      They move by sqrt(2) R^2 in Frobenius norm, or by R^2.
    * For columns far from 0: histograms of d columns in narrower and narrower windows, each sqrt(2 d), or sqrt(d).
    * The range of the targets: counts by power-of-two bins, once or twice, and histograms, each with d = 1.
      Earlier releases decide which columns need a window, with how many looks, and hence later shares. All shares
      add up to at most 1 on every path, and sums of mu^2 compose adaptively ([Smith2022]_).
    * The Gram matrix of standardized rows that are scaled down to norm C: it moves by sqrt(2) C^2 in Frobenius
      norm, or by C^2, because both contributions are positive semidefinite with trace at most C^2.
    * Gradients of standardized rows, clipped to l2 norm G: the mean moves by at most 2 G / n, or by G / n.
    * Histograms and counts by power of two of the residuals, each with d = 1.
    * The second moment of (prediction, constant, residual), scaled down to norm R, where units times mu are at
      least 300: by sqrt(2) R^2, or by R^2. Its slope shrinks predictions that are surely too steep.
    * The mean of the residuals, each clipped to b, moves by 2 b / n, or by b / n.

    The first number of a pair holds under replace-one, the second under zero-out and add-remove. A group
    contributes the mean over its rows to each of them. Solving, shrinking and the choice by ``C="auto"`` are
    post-processing: each C has the same releases with the same noise; later gradients are taken at other points.

    {privacy.unprotected}

    References
    ----------
    .. [Balle2018]
    .. [Smith2022]

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from skdp import DPLinearRegression
    >>> X, y = make_regression(5000, 8, noise=10.0, random_state=0)
    >>> model = DPLinearRegression(epsilon=1.0).fit(1e3 * X, y + 1e5)
    >>> bool(model.score(1e3 * X, y + 1e5) > 0.9), model.solver_
    (True, 'moments')
    """

    solver = changed(
        text=""""moments" is the method described below. The others do not scale columns: "ight" is
        `DPIGHTRegressor`, for sparse tables and for many features, "lssgd" is `DPLSSGDRegressor`, for
        neighbouring features such as pixels. "auto" chooses by public numbers; ``solver_`` and `privacy_` state
        the choice, and its reason."""
    )
    C = C_OF_NUMBERS
    y_bounds: object = Y_BOUNDS
    coef_: object = fitted(
        "ndarray of shape (n_features,)",
        """Coefficients of the features, which are cut to ``feature_bounds_``. `predict` is cut to
        ``prediction_bounds_`` as well.""",
    )
    n_iter_: int = fitted("int", "Number of rounds.")
    target_center_: float = fitted("float", "The released centre of y, or 0 where none was released.")
    target_scale_: float = fitted(
        "float",
        "About 2.5 released standard deviations of y; 0 where nothing of y was found, and the model predicts 0.",
    )
    prediction_bounds_: tuple[float, float] = fitted(
        "tuple of (float, float)",
        """Ends to which `predict` is cut: ``y_bounds``, or three half-widths about the centre (two of the other
        solvers). Where many targets surely lie beyond the window, the end of their highest power-of-two bin takes
        its place. Infinite with ``bounded=False``.""",
    )
    shrinkage_: float = fitted(is_set=False)
