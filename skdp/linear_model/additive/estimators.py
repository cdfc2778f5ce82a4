"""`DPAdditiveClassifier` and `DPAdditiveRegressor`."""

from skdp._docs import document
from skdp.base.fit import PrivateFit
from skdp.fitting.targets import LabelModel, NumberModel, Problem
from skdp.linear_model.additive.additive_fit import AdditiveFit
from skdp.linear_model.additive.search import OF_CLASSES, OF_NUMBERS
from skdp.linear_model.auto.estimators import C_OF_NUMBERS, CLASS_WEIGHT, Y_BOUNDS


@document()
class DPAdditiveClassifier(AdditiveFit, LabelModel, PrivateFit[Problem]):
    """Additive model of classes that is differentially private: a sum of shapes that can be drawn.

    `DPLogisticRegression`, with smooth functions of the columns where a line does not do, and with a few products
    of two columns. Nothing is asked about the data. It is the first choice for tables that no line fits. Where so
    little can be told from noise that curves would lose accuracy, it is the linear estimator, bit for bit.

    The score of a row, the log odds of the second class or the logit of each class, is ``intercept_`` plus the
    contributions of its columns and products. `explain` lists them, `plot_shapes` draws them.

    {guarantee}

    Attributes
    ----------
    {linear_}
    intercept_ : float or ndarray of shape (n_classes,)
        The score of a row of ``fill_values_``, without curves and products.
    {glassbox}
    {classes_} {C_}
    n_iter_ : int
        Number of gradients that led to a step.
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPAdditiveRegressor : The same for numbers as targets.
    DPLogisticRegression : Lines only; it takes CSR matrices.

    Notes
    -----
    **Algorithm.** The method is ours. It is `DPLogisticRegression` up to the Gram matrix. Then

    1. two gradients fit a line;
    2. a wide gradient asks every column that has not just two values for 2 or 4 smooth functions as well: cosines
       of the standardized column, cut at 2.5 standard deviations and flat beyond, orthogonal to a constant and to
       the line under the law of density exp(-t^2 / 2) + .05 (not normalized);
    3. columns that have a curve with a probability of 1/4 or more, given this gradient and its known noise, get 1,
       2 or 4 functions;
    4. where units times mu are at least 1000, a gradient at the same model asks for products of the 8 columns with
       the largest coefficients, which are chosen in the same way;
    5. along a Gram matrix of all that was chosen both gradients become one step, and two last gradients mend it.

    Public rules leave a fit to the linear estimator: units times mu below 125, or (d + 1)^1.5 / (n mu) above
    .15. Released numbers do the same where every column has two values, or where one class has nearly all records.
    K classes need K - 1 times as many units.

    {privacy.additive}

    {privacy.unprotected}

    References
    ----------
    .. [Balle2018]
    .. [Smith2022]

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveClassifier
    >>> X = np.random.default_rng(0).normal(size=(4000, 3))
    >>> y = (np.abs(X[:, 0]) > 0.7).astype(int)
    >>> model = DPAdditiveClassifier(epsilon=1.0, classes=(0, 1)).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), model.solver_
    (True, 'additive')
    """

    class_weight = CLASS_WEIGHT

    _linear_estimator = "DPLogisticRegression"
    _budget_parts = OF_CLASSES


@document(DPAdditiveClassifier)
class DPAdditiveRegressor(AdditiveFit, NumberModel, PrivateFit[Problem]):
    """Additive model of numbers that is differentially private: a sum of shapes that can be drawn.

    `DPLinearRegression`, with smooth functions of the columns where a line does not do, and with a few products of
    two columns. Nothing is asked about the data. It is the first choice for tables that no line fits. Where so
    little can be told from noise that curves would lose accuracy, it is the linear estimator, bit for bit.

    A prediction is ``intercept_`` plus the contributions of the row's columns and products, cut to
    ``prediction_bounds_``. `explain` lists them, `plot_shapes` draws them.

    {guarantee}

    Attributes
    ----------
    {linear_}
    intercept_ : float
        The score of a row of ``fill_values_``, without curves and products.
    {glassbox} {C_}
    target_center_ : float
        The released centre of y, or 0 where none was released.
    target_scale_ : float
        About 2.5 released standard deviations of y; 0 where nothing of y was found, and the model predicts 0.
    prediction_bounds_ : tuple of (float, float)
        Ends to which `predict` is cut: ``y_bounds``, or three half-widths about the centre. Where many targets
        surely lie beyond the window, the end of their highest power-of-two bin takes its place. Infinite with
        ``bounded=False``.
    n_iter_ : int
        Number of gradients that led to a step.
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPAdditiveClassifier : The same for classes.
    DPLinearRegression : Lines only; it takes CSR matrices.

    Notes
    -----
    **Algorithm.** The one of `DPAdditiveClassifier`, on the releases of `DPLinearRegression`. Where units times mu
    are below 1000, three gradients fit the line, and three come last.

    {privacy.additive}

    {privacy.unprotected}

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveRegressor
    >>> X = np.random.default_rng(0).normal(size=(4000, 3))
    >>> y = 50.0 + 10.0 * np.abs(X[:, 0]) + X[:, 1]
    >>> model = DPAdditiveRegressor(epsilon=1.0).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), model.solver_
    (True, 'additive')
    """

    C = C_OF_NUMBERS
    y_bounds: object = Y_BOUNDS

    _linear_estimator = "DPLinearRegression"
    _budget_parts = OF_NUMBERS
