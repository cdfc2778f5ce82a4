"""The estimators of sparse-gradient ERM: parameters here, the algorithm in `solver`."""

from typing import Any, Literal

from skdp._docs import document
from skdp.base.declare import parameter
from skdp.base.kinds import described
from skdp.fitting import parameters
from skdp.fitting.any_loss import GLMAnyLoss
from skdp.fitting.bounded import BoundedPredictions
from skdp.fitting.glm import GLMModel, LabelModel, NumberModel
from skdp.linear_model.sparse_erm.fit import SparseGradientFit, SparseLinearFit, SparseRegressionFit

__all__ = ["DPSparseERM", "DPSparseERMClassifier", "DPSparseERMRegressor"]


@document()
class DPSparseERM(BoundedPredictions, SparseRegressionFit, GLMAnyLoss, SparseLinearFit):
    """Generalised linear model of any loss by sparse private gradients (numeric sparse vector).

    Algorithm 2 of [ZhangH2021]_ with its privacy corrected. A step is
    ``theta <- theta - learning_rate * NumericSparse(mean clipped gradient)``. `predict` gives the mean of the
    model: the linear predictor for the squared and Huber's loss, the probability of 1 for the logistic loss,
    the probabilities of all classes for the multinomial loss. `DPSparseERMRegressor` and
    `DPSparseERMClassifier` are the same fit with the usual targets and predictions.

    {guarantee}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_classes, n_features)
        {coef_.classifier}
        With the squared and Huber's loss `predict` is cut to ``prediction_bounds_``, so for rows far outside it
        differs from ``X @ coef_ + intercept_``.
    intercept_ : float or ndarray of shape (n_classes,)
        {intercept_.classifier}
    {support_}
    n_iter_ : int
        Number of steps, without those of a refit.
    n_hits_ : int
        The number given, or the one that "auto" became.
    n_released_ : int
        Number of gradient entries that all steps released.
    threshold_ : float
        The threshold of the last step.
    {target_center_} {target_reach_} {shrinkage_}
    {learning_rate_} {clip_norm_} {prediction_bounds_} {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPSparseERMClassifier : The same fit for labels.
    DPSparseERMRegressor : The same fit for the squared and Huber's loss.

    Notes
    -----
    **Privacy.** Each row's gradient is clipped in the sup norm. Replacing one record (or group) moves an entry of
    their mean by at most ``2 clip_norm / n``, whatever the number of features. Under zero-out and add-remove it is
    half of that. A step is ``n_hits`` rounds of the sparse vector technique of [Lyu2017]_, and each round is a
    pure release. The rounds compose in Gaussian DP, and their epsilons add up with ``delta=0``.

    Erratum of [ZhangH2021]_, both versions: Theorem 1 takes the drawing of one of m
    fixed groups of rows for a sample that amplifies the privacy of a record. It does not amplify it. For
    example, take groups that can be told apart, eps' = 1 a step, T = 1000, m = 100 and delta = 1e-5: the claim
    is 2.16, and the truth is 18.96. Here a record pays the full price of each step that looks at it. Smaller
    errata: version 1 releases one value more than it pays for; its conditions ``m >= 10 sqrt(T)`` and
    ``T = min(...)`` are reversed; the loop "0 to T" makes T + 1 steps.

    {privacy.unprotected}

    References
    ----------
    .. [ZhangH2021] Algorithms 1 and 2, Theorems 1 and 2.
    .. [Lyu2017]

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSparseERM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 300))
    >>> y = (X[:, 3] > 0).astype(float)
    >>> model = DPSparseERM(loss="logistic", epsilon=4.0, random_state=0).fit(X, y)
    >>> bool(model.predict(X)[X[:, 3] > 1].mean() > 0.6)
    True
    """

    loss: Any = parameter(
        described('{"squared", "huber", "logistic", "multinomial"} or object of `skdp.losses`'),
        """The loss of a record as a function of its linear predictor. Targets are numbers: 0 or 1 for the
        logistic loss, 0..K-1 for the multinomial. "huber" is ``HuberLoss(1.0)``. "multinomial" infers K
        from y, warns `PrivacyLeakWarning` and says so in the report; ``MultinomialLoss(K)`` declares it. A
        loss of your own inherits from `skdp.losses.Loss`.""",
        default="squared",
    )


@document(DPSparseERM)
class DPSparseERMClassifier(SparseGradientFit, LabelModel, GLMModel, SparseLinearFit):
    """Logistic or softmax regression by sparse private gradients (numeric sparse vector).

    A step finds a few large entries of the mean gradient and releases only these, as in
    [ZhangH2021]_. So the noise grows with the logarithm of the number of features,
    and not with its root. The model has no more coefficients than were released.

    {guarantee}

    {recalibrated}

    Attributes
    ----------
    {coef_.classifier} {intercept_.classifier} {classes_} {support_} {n_iter_} {n_hits_} {n_released_}
    {threshold_}
    {learning_rate_} {clip_norm_} {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPSparseERM : The same fit for any loss.
    DPFrankWolfeClassifier : Chooses one coefficient in each step.

    Notes
    -----
    {Notes}

    References
    ----------
    {References}

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSparseERMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 500))
    >>> y = X[:, 3] - X[:, 7] > 0
    >>> model = DPSparseERMClassifier(epsilon=4.0, classes=(False, True), random_state=0).fit(X, y)
    >>> model.coef_[0, 3] > 0, model.coef_[0, 7] < 0
    (np.True_, np.True_)
    """


@document(DPSparseERM)
class DPSparseERMRegressor(BoundedPredictions, SparseRegressionFit, NumberModel, GLMModel, SparseLinearFit):
    """Linear regression by sparse private gradients (numeric sparse vector).

    A step finds a few large entries of the mean gradient and releases only these, as in
    [ZhangH2021]_. So the noise grows with the logarithm of the number of features,
    and not with its root. The model has no more coefficients than were released.

    {guarantee}

    Attributes
    ----------
    {coef_.regressor} {intercept_.regressor} {support_} {n_iter_} {n_hits_} {n_released_} {threshold_}
    {target_center_} {target_reach_} {shrinkage_}
    {learning_rate_} {clip_norm_} {prediction_bounds_} {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPSparseERM : The same fit for any loss.
    DPFrankWolfeRegressor : Chooses one coefficient in each step.

    Notes
    -----
    {Notes}

    {privacy.targets}

    References
    ----------
    {References}

    Examples
    --------
    >>> from skdp import DPSparseERMRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(5000, 500, n_informative=3, random_state=0)
    >>> model = DPSparseERMRegressor(epsilon=4.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.5), len(model.support_) <= model.n_released_
    (True, True)
    """

    loss: Literal["squared", "huber"] = parameters.LOSS
    huber_threshold: float = parameters.HUBER_THRESHOLD
