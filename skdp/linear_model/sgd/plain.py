"""The estimators of plain private stochastic gradient descent; the algorithm is in `solver`."""

from skdp._docs import document
from skdp.linear_model.glm import GLMClassifier, GLMRegressor
from skdp.linear_model.sgd.smoothed import (
    DPLSSGDClassifier,
    DPLSSGDRegressor,
    StochasticDescentFit,
)

__all__ = ["DPSGDClassifier", "DPSGDRegressor"]


@document(DPLSSGDClassifier)
class DPSGDClassifier(GLMClassifier, StochasticDescentFit):
    """Logistic or softmax regression by differentially private stochastic gradient descent.

    Steps along noisy clipped gradients of all records or of minibatches, as in
    [Bassily2014]_ and [Abadi2016]_.

    {guarantee}

    Parameters
    ----------
    {epsilon} {delta} {batch_size} {sampling} {max_iter} {learning_rate} {schedule} {momentum} {solver}
    {average}
    {clip_norm} {penalty} {alpha} {fit_intercept} {classes} {coef_init}
    {adjacency} {unit} {n_public} {max_weight} {accountant} {random_state} {verbose} {callback}

    Attributes
    ----------
    {coef_.classifier} {intercept_.classifier} {support_} {classes_} {n_iter_} {learning_rate_} {clip_norm_}
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPLSSGDClassifier : Smooths its noisy gradients.
    DPIGHTClassifier : Steps on full batches that keep a number of features.

    Notes
    -----
    **Privacy.** The gradient of each record (or group) is clipped to l2 norm ``clip_norm``. Replacing one in a
    batch moves the batch mean by at most ``2 clip_norm / batch_size`` in l2 norm. Under zero-out and
    add-remove it is half of that. Steps on all records compose as exact Gaussian DP. For Poisson batches the
    noise is calibrated by the privacy loss distributions of the sampled Gaussian; under replace-one these are
    those of its dominating pair. For batches without replacement it is calibrated by Renyi DP. Momentum, Adam
    and averaging are post-processing of released gradients and cost no budget.

    {privacy.unprotected}

    References
    ----------
    .. [Bassily2014]
    .. [Abadi2016]

    Examples
    --------
    >>> from skdp import DPSGDClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPSGDClassifier(epsilon=2.0, batch_size=500, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, model.n_iter_, model.privacy_.epsilon
    ((1, 20), 100, 2.0)
    >>> model.privacy_.mechanisms[-1]["sampling"]
    'Poisson'
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        batch_size="auto",
        sampling="poisson",
        max_iter="auto",
        learning_rate="auto",
        schedule="constant",
        momentum=0.9,
        solver="sgd",
        average="auto",
        clip_norm="adaptive",
        penalty="l2",
        alpha=0.0,
        fit_intercept=True,
        classes=None,
        coef_init=None,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        max_weight=None,
        accountant=None,
        random_state=None,
        verbose=False,
        callback=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.batch_size = batch_size
        self.sampling = sampling
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.momentum = momentum
        self.solver = solver
        self.average = average
        self.clip_norm = clip_norm
        self.penalty = penalty
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback


@document(DPLSSGDRegressor)
class DPSGDRegressor(GLMRegressor, StochasticDescentFit):
    """Linear regression by differentially private stochastic gradient descent.

    Steps along noisy clipped gradients of all records or of minibatches, as in
    [Bassily2014]_ and [Abadi2016]_.

    {guarantee}

    Parameters
    ----------
    {epsilon} {delta} {loss} {huber_threshold} {batch_size} {sampling} {max_iter} {learning_rate} {schedule}
    {momentum}
    {solver} {average} {clip_norm} {penalty} {alpha} {fit_intercept} {coef_init}
    {adjacency} {unit} {n_public} {max_weight} {accountant} {random_state} {verbose} {callback}

    Attributes
    ----------
    {coef_.regressor} {intercept_.regressor} {support_} {n_iter_} {learning_rate_} {clip_norm_}
    {target_center_}
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPLSSGDRegressor : Smooths its noisy gradients.
    DPIGHTRegressor : Steps on full batches that keep a number of features.

    Notes
    -----
    **Privacy.** As for `DPSGDClassifier`: a batch mean of clipped gradients moves by at most
    ``2 clip_norm / batch_size`` in l2 norm under replace-one, and by half of that under zero-out and
    add-remove. The Gaussian noise is calibrated to all steps together. The median of y is released by noisy
    counts of targets.

    {privacy.unprotected}

    References
    ----------
    .. [Bassily2014]
    .. [Abadi2016]

    Examples
    --------
    >>> from skdp import DPSGDRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 20, n_informative=3, random_state=0)
    >>> model = DPSGDRegressor(epsilon=2.0).fit(X, y)
    >>> model.coef_.shape, model.n_iter_, model.privacy_.epsilon
    ((20,), 100, 2.0)
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        loss="squared",
        huber_threshold=1.0,
        batch_size="auto",
        sampling="poisson",
        max_iter="auto",
        learning_rate="auto",
        schedule="constant",
        momentum=0.9,
        solver="sgd",
        average="auto",
        clip_norm="adaptive",
        penalty="l2",
        alpha=0.0,
        fit_intercept=True,
        coef_init=None,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        max_weight=None,
        accountant=None,
        random_state=None,
        verbose=False,
        callback=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.huber_threshold = huber_threshold
        self.batch_size = batch_size
        self.sampling = sampling
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.momentum = momentum
        self.solver = solver
        self.average = average
        self.clip_norm = clip_norm
        self.penalty = penalty
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
