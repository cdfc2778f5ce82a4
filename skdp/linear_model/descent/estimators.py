"""The estimators that recursive momentum is compared with; their solvers are `_descent` and `_agd`."""

from numbers import Real

from skdp._docs import document
from skdp.base import check_number
from skdp.linear_model.descent.agd import adaptive_descent
from skdp.linear_model.descent.solver import descend, random_round
from skdp.linear_model.frame import Solution
from skdp.linear_model.glm import GLMClassifier, Problem
from skdp.linear_model.parts.stochastic import SAMPLING, StochasticFit
from skdp.privacy.session import PrivacySession

__all__ = ["DPAGDClassifier", "DPGDClassifier", "DPRRPSGDClassifier"]


class _DescentFit(StochasticFit):
    """A fit on full batches, so it keeps its mu."""

    batch_size = "auto"
    sampling = "poisson"


@document()
class DPGDClassifier(GLMClassifier, _DescentFit):
    """Logistic or softmax regression by differentially private gradient descent.

    A fixed number of noisy steps on full gradients (Wang, Ye & Xu [1]_), with the nonconvex or the l2 penalty.
    The guarantee is (epsilon, delta)-differential privacy for one fit, under the given ``adjacency`` and
    ``unit``; `privacy_` says what it rests on.

    Parameters
    ----------
    {epsilon} {delta}
    max_iter : int or "auto", default="auto"
        Number of steps, each of which reads all records. "auto" is between 20 and 100, from public numbers:
        ``n mu / (8 sqrt(p))`` with p parameters and the mu of (epsilon, delta). Every step is paid for, so
        there is no stopping rule.
    learning_rate : float or "auto", default="auto"
        A number is used literally, and the last iterate is the result. "auto" takes dual averaging with a step
        size computed from released gradients and known noise (user guide of `DPIGHTClassifier`), which costs
        nothing and needs no tuning; the result is its average.
    {clip_norm} {penalty} {alpha} {fit_intercept} {classes} {coef_init} {adjacency} {unit}
    {n_public} {max_weight} {accountant} {random_state} {verbose} {callback}

    Attributes
    ----------
    {coef_} {intercept_} {support_} {classes_} {n_iter_} {learning_rate_} {clip_norm_} {privacy_}
    {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPRRPSGDClassifier : Steps on minibatches, up to a random round.
    DPAGDClassifier : Fewer steps, whose sizes are chosen privately.

    Notes
    -----
    The mean of clipped gradients moves by at most ``2 clip_norm / n`` in l2 norm when a record (or group) is
    replaced, by half of that under the other adjacencies. All releases are Gaussian and use all records, so T of
    them with noise multiplier z are exactly mu-GDP with ``mu = sqrt(T) / z``. [1]_ sizes the noise by the
    moments accountant with constants that are not optimal; here it is calibrated to the exact formula.

    References
    ----------
    .. [1] D. Wang, M. Ye and J. Xu, "Differentially private empirical risk minimization revisited: faster and
       more general", NeurIPS 2017.
    .. [2] L. Wang, "Towards efficient and effective privacy-preserving machine learning", dissertation, UCLA,
       2021, section 4.7.1.

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
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _solve(self, session: PrivacySession, problem: Problem) -> Solution:
        return self._run(
            descend,
            session,
            problem,
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            clip_norm=self.clip_norm,
        )


@document()
class DPRRPSGDClassifier(GLMClassifier, StochasticFit):
    """Logistic or softmax regression by random round private stochastic gradient descent.

    Noisy steps on minibatches; the result is the iterate of a round that is drawn uniformly before the records
    are touched (Zhang, Zheng, Mou & Wang [1]_), with the nonconvex or the l2 penalty. The guarantee is (epsilon,
    delta)-differential privacy for one fit, under the given ``adjacency`` and ``unit``; `privacy_` says what
    it rests on.

    Parameters
    ----------
    {epsilon} {delta}
    batch_size : int or "auto", default="auto"
        Expected number of records (or groups) in a batch, which means divide by; the paper has 1. "auto" is
        n / 64, but at least 64. n or more is the full batch.
    sampling : {"poisson", "without_replacement"}, default="poisson"
        How batches are drawn. Without replacement is accounted by Renyi DP and needs much more noise.
    max_iter : int or "auto", default="auto"
        Number T of planned steps; the one whose iterate is kept is uniform on 1..T. "auto" is 500, with the
        automatic batch size about 8 data passes, as published. All T are paid for; those after the drawn round
        are not taken.
    learning_rate : float or "auto", default="auto"
        A number is used literally. "auto" is a constant over the smoothness of the mean loss, which follows from
        the released median row norm: at most 5, less where the noise of T steps would carry too far (user guide).
    {clip_norm} {penalty} {alpha} {fit_intercept} {classes} {coef_init} {adjacency} {unit}
    {n_public} {max_weight} {accountant} {random_state} {verbose} {callback}

    Attributes
    ----------
    {coef_} {intercept_} {support_} {classes_}
    n_iter_ : int
        The round that was drawn: number of steps that were taken. It does not depend on the records.
    learning_rate_ : float
        The step size.
    {clip_norm_} {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPGDClassifier : Steps on full gradients, the last iterate or an average.

    Notes
    -----
    Each record's gradient is clipped to ``clip_norm`` and batch sums are divided by the expected batch size, a
    public constant. The noise is calibrated to T releases on Poisson samples by privacy loss distributions of
    the pair ``(1-q) N(0) + q N(C)``, ``(1-q) N(0) + q N(-C)`` (replace-one), not by the bound of [1]_. The
    claim is that of all T steps, also when the drawn round is early: a round that was drawn before the data
    were touched could have been charged alone, which would give another method.

    References
    ----------
    .. [1] J. Zhang, K. Zheng, W. Mou and L. Wang, "Efficient private ERM for smooth objectives", IJCAI 2017.
    .. [2] L. Wang, "Towards efficient and effective privacy-preserving machine learning", dissertation, UCLA,
       2021, section 4.7.1.

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
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _solve(self, session: PrivacySession, problem: Problem) -> Solution:
        return self._run(
            random_round,
            session,
            problem,
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            clip_norm=self.clip_norm,
            batch_size=self.batch_size,
            sampling=SAMPLING[self.sampling],
        )


@document()
class DPAGDClassifier(GLMClassifier, _DescentFit):
    """Logistic or softmax regression by private gradient descent with an adaptive budget.

    Noisy full gradients, each followed by a private choice of how far to go along it; where "not at all" wins,
    the gradient is measured again with more budget (Lee & Kifer [1]_). With the nonconvex or the l2 penalty. The
    guarantee is (epsilon, delta)-differential privacy for one fit, under the given ``adjacency`` and ``unit``;
    `privacy_` says what it rests on.

    Parameters
    ----------
    {epsilon} {delta}
    max_iter : int or "auto", default="auto"
        Largest number of steps. The first step gets 1 / max_iter of the budget, "auto" 1 / 30; the fit ends
        where the budget does not hold another step.
    learning_rate : float or "auto", default="auto"
        Largest distance that the first steps may go; five distances evenly spaced up to it are compared with
        0. Every fifth step it becomes 1.1 times the largest that was chosen lately. "auto" follows from
        the released median row norm.
    loss_bound : float or "auto", default="auto"
        Where distances are compared, one record's (or group's) loss is clipped to [0, loss_bound]. "auto" is
        three times the loss of a model that knows nothing: ``3 log(n_classes)``.
    {clip_norm} {penalty} {alpha} {fit_intercept} {classes} {coef_init} {adjacency} {unit}
    {n_public} {max_weight} {accountant} {random_state} {verbose} {callback}

    Attributes
    ----------
    {coef_} {intercept_} {support_} {classes_}
    n_iter_ : int
        Number of steps. It depends on released values only.
    learning_rate_ : float
        The largest distance that the first steps might go, given or of "auto".
    last_distance_ : float
        The distance of the last step; 0 where its choice found nothing better than to stay.
    {clip_norm_}
    loss_bound_ : float
        The loss bound given, or the one of "auto".
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPGDClassifier : A fixed number of steps.

    Notes
    -----
    How often a gradient is measured again follows from released values, so the budget is spent as the fit
    goes. It is a filter: the total in mu^2 is fixed first, a release that it does not hold is refused before
    anything is drawn, and the claim is the total, also where less was spent. A gradient has l2 sensitivity ``2
    clip_norm / n``; a choice is by Gumbel noise of scale ``2 Delta / eps0`` on mean losses with ``Delta =
    loss_bound / n`` (both under replace-one), which is an eps0-bounded-range choice. Averaging two
    measurements by their inverse variances is post-processing.

    References
    ----------
    .. [1] J. Lee and D. Kifer, "Concentrated differentially private gradient descent with adaptive per-iteration
       privacy budget", KDD 2018.
    .. [2] A. Smith and A. Thakurta, "Fully adaptive composition for Gaussian differential privacy", 2022.

    Examples
    --------
    >>> from skdp import DPAGDClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPAGDClassifier(epsilon=2.0, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, model.n_iter_ >= 1, model.privacy_.epsilon
    ((1, 20), True, 2.0)
    """

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

    def _solve(self, session: PrivacySession, problem: Problem) -> Solution:
        return self._run(
            adaptive_descent,
            session,
            problem,
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            clip_norm=self.clip_norm,
            loss_bound=self.loss_bound,
        )
