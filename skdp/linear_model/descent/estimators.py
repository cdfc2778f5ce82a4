"""The estimators that recursive momentum is compared with; their algorithms are in `solver` and `agd`."""

from numbers import Real

from skdp._docs import document
from skdp.base import check_number
from skdp.linear_model.descent.agd import AdaptiveSettings, adaptive_descent
from skdp.linear_model.descent.solver import (
    BatchSettings,
    StepSettings,
    gradient_descent,
    random_round,
)
from skdp.linear_model.glm import GLMClassifier
from skdp.linear_model.stochastic import SAMPLING, StochasticFit

__all__ = ["DPAGDClassifier", "DPGDClassifier", "DPRRPSGDClassifier"]


class _DescentFit(StochasticFit):
    """A fit on full batches, so it keeps its mu."""

    batch_size = "auto"
    sampling = "poisson"


@document()
class DPGDClassifier(GLMClassifier, _DescentFit):
    """Logistic or softmax regression by differentially private gradient descent.

    A fixed number of noisy steps on full gradients, as in [WangYe2017]_ and section 4.7.1 of [Wang2021]_.

    {guarantee}

    {recalibrated}

    Parameters
    ----------
    {epsilon} {delta} {max_iter}
        Each step reads all records. "auto" is ``n mu / (8 sqrt(p))``, at least 20 and at most 100, with p
        parameters and the mu of (epsilon, delta).
    {learning_rate}
        With a number the last iterate is the result. "auto" is dual averaging, which needs no tuning (user
        guide of `DPIGHTClassifier`); the result is its average.
    {clip_norm.descent}
    {penalty} {alpha} {fit_intercept} {classes} {class_weight} {coef_init}
    {adjacency} {unit} {n_public} {max_weight} {accountant} {random_state} {verbose} {callback}

    Attributes
    ----------
    {coef_.classifier} {intercept_.classifier} {support_} {classes_} {n_iter_} {learning_rate_} {clip_norm_}
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPRRPSGDClassifier : Steps on minibatches, up to a random round.
    DPAGDClassifier : Fewer steps, whose sizes are chosen privately.

    Notes
    -----
    {privacy.full_batch}

    [WangYe2017]_ size the noise by the moments accountant, whose constants are larger than
    necessary. Here the noise is calibrated to the exact formula.

    {privacy.unprotected}

    References
    ----------
    .. [WangYe2017]
    .. [Wang2021] Section 4.7.1.

    Examples
    --------
    >>> from skdp import DPGDClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPGDClassifier(epsilon=2.0, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, model.n_iter_ >= 20, model.privacy_.epsilon
    ((1, 20), True, 2.0)
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        max_iter="auto",
        learning_rate="auto",
        clip_norm="adaptive",
        penalty="nonconvex",
        alpha=1e-3,
        fit_intercept=True,
        classes=None,
        class_weight=None,
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
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.penalty = penalty
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.class_weight = class_weight
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    _algorithm = staticmethod(gradient_descent)

    def _settings(self) -> StepSettings:
        return StepSettings(**self._numbers("max_iter", "learning_rate", "clip_norm"))


@document()
class DPRRPSGDClassifier(GLMClassifier, StochasticFit):
    """Logistic or softmax regression by random round private stochastic gradient descent.

    Noisy steps on minibatches, as in [ZhangJ2017]_ and section 4.7.1 of [Wang2021]_. The
    result is the iterate of a random round, which is drawn uniformly before the records are touched.

    {guarantee}

    {recalibrated}

    Parameters
    ----------
    {epsilon} {delta} {batch_size}
        "auto" is n / 64, but at least 64. The paper has 1.
    {sampling}
    max_iter : int or "auto", default="auto"
        Number T of planned steps. The iterate of one of them is kept, drawn uniformly from 1 to T. "auto" is
        500. With the automatic batch size that is about 8 passes over the data, as published. All T steps are
        paid for. Those after the drawn round are not taken.
    {learning_rate}
        "auto" is a constant over the smoothness of the mean loss, which follows from the released median row
        norm. It is at most 5, and less if the noise of T steps would carry the iterate too far (user guide).
    {clip_norm.descent} {penalty} {alpha} {fit_intercept} {classes} {class_weight} {coef_init}
    {adjacency} {unit} {n_public} {max_weight} {accountant} {random_state} {verbose} {callback}

    Attributes
    ----------
    {coef_.classifier} {intercept_.classifier} {support_} {classes_}
    n_iter_ : int
        The round that was drawn, which is the number of steps taken. It does not depend on the records.
    learning_rate_ : float
        The step size, the same in every step.
    {clip_norm_} {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPGDClassifier : Steps on full gradients, the last iterate or an average.

    Notes
    -----
    **Privacy.** The gradient of each record (or group) is clipped to ``clip_norm``. Batch sums are divided by
    the expected batch size, a public constant. T releases on Poisson samples of rate q are dominated, under
    replace-one, by T copies of the pair ``(1-q) N(0) + q N(C)``, ``(1-q) N(0) + q N(-C)``. Under zero-out and
    add-remove the second is ``N(0)``. The noise is calibrated by their privacy loss distributions, not by the
    bound of [ZhangJ2017]_.

    The claim is that of all T steps, even if the drawn round is early. A round that is drawn before the data
    are touched could be charged alone; that would be another method, with less noise for early rounds.

    {privacy.unprotected}

    References
    ----------
    .. [ZhangJ2017]
    .. [Wang2021] Section 4.7.1.

    Examples
    --------
    >>> from skdp import DPRRPSGDClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPRRPSGDClassifier(epsilon=2.0, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, 1 <= model.n_iter_ <= 500, model.privacy_.epsilon
    ((1, 20), True, 2.0)
    """

    _auto_samples = True

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        batch_size="auto",
        sampling="poisson",
        max_iter="auto",
        learning_rate="auto",
        clip_norm="adaptive",
        penalty="nonconvex",
        alpha=1e-3,
        fit_intercept=True,
        classes=None,
        class_weight=None,
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
        self.clip_norm = clip_norm
        self.penalty = penalty
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.class_weight = class_weight
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    _algorithm = staticmethod(random_round)

    def _settings(self) -> BatchSettings:
        numbers = self._numbers("max_iter", "learning_rate", "clip_norm", "batch_size")
        return BatchSettings(**numbers, sampling=SAMPLING[self.sampling])


@document()
class DPAGDClassifier(GLMClassifier, _DescentFit):
    """Logistic or softmax regression by private gradient descent with an adaptive budget.

    DP-AGD of [Lee2018]_, also in section 4.7.1 of [Wang2021]_. Each step releases a noisy
    full gradient and then chooses privately how far to go along it. If the choice is to stay, the gradient is
    measured again with more budget.

    {guarantee}

    {recalibrated}

    Parameters
    ----------
    {epsilon} {delta}
    max_iter : int or "auto", default="auto"
        Largest number of steps. The first step gets 1 / max_iter of the budget; "auto" gives it 1 / 30. The
        fit ends when the budget does not hold another step.
    learning_rate : float or "auto", default="auto"
        Largest distance that the first steps may go. Five distances, evenly spaced up to it, are compared with
        0. After every fifth step it becomes 1.1 times the largest distance that the last five steps chose.
        "auto" follows from the released median row norm.
    loss_bound : float or "auto", default="auto"
        The loss of one record (or group) is clipped to [0, loss_bound] when distances are compared. "auto" is
        three times the loss of the zero model: ``3 log(n_classes)``.
    {clip_norm.descent} {penalty} {alpha} {fit_intercept} {classes} {class_weight} {coef_init}
    {adjacency} {unit} {n_public} {max_weight} {accountant} {random_state} {verbose} {callback}

    Attributes
    ----------
    {coef_.classifier} {intercept_.classifier} {support_} {classes_}
    n_iter_ : int
        Number of steps. It depends on released values only.
    learning_rate_ : float
        The largest distance of the first steps, given or computed by "auto".
    last_distance_ : float
        The distance of the last step. It is 0 if the last choice was to stay.
    {clip_norm_}
    loss_bound_ : float
        The loss bound given, or the one that "auto" became.
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPGDClassifier : A fixed number of steps.

    Notes
    -----
    **Privacy.** Replacing one record (or group) moves the mean gradient by at most ``2 clip_norm / n`` in l2
    norm and a mean loss by at most ``Delta = loss_bound / n``. Under zero-out and add-remove both are half of
    that. A gradient is a Gaussian release. A distance is chosen by Gumbel noise of scale ``2 Delta / eps0`` on
    mean losses, which is an eps0-bounded-range choice. Averaging two measurements by their inverse variances
    is post-processing.

    How often a gradient is measured again follows from released values, so the budget is spent adaptively. A
    privacy filter makes this safe, by the theorem of [Smith2022]_: the total in mu^2 is fixed first, and a release
    that it does not hold is refused before anything is drawn. The claim is the total, even if less was spent.

    {privacy.unprotected}

    References
    ----------
    .. [Lee2018]
    .. [Smith2022]
    .. [Wang2021] Section 4.7.1.

    Examples
    --------
    >>> from skdp import DPAGDClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPAGDClassifier(epsilon=2.0, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, model.n_iter_ >= 1, model.privacy_.epsilon
    ((1, 20), True, 2.0)
    """

    last_distance_: float
    loss_bound_: float

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        max_iter="auto",
        learning_rate="auto",
        loss_bound="auto",
        clip_norm="adaptive",
        penalty="nonconvex",
        alpha=1e-3,
        fit_intercept=True,
        classes=None,
        class_weight=None,
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
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.loss_bound = loss_bound
        self.clip_norm = clip_norm
        self.penalty = penalty
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.class_weight = class_weight
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(
            "loss_bound", self.loss_bound, Real, low=0, strict=True, high=1e100, word="auto"
        )

    _algorithm = staticmethod(adaptive_descent)

    def _settings(self) -> AdaptiveSettings:
        return AdaptiveSettings(
            **self._numbers("max_iter", "learning_rate", "clip_norm", "loss_bound")
        )
