"""The estimators that recursive momentum is compared with; their algorithms are in `solver` and `agd`."""

from numbers import Real

from skdp.base import check_number
from skdp.linear_model.descent.agd import AdaptiveSettings, adaptive_descent
from skdp.linear_model.descent.solver import (
    BatchSettings,
    StepSettings,
    gradient_descent,
    random_round,
)
from skdp.linear_model.glm import GLMClassifier
from skdp.linear_model.parts.stochastic import SAMPLING, StochasticFit

__all__ = ["DPAGDClassifier", "DPGDClassifier", "DPRRPSGDClassifier"]


class _DescentFit(StochasticFit):
    """A fit on full batches, so it keeps its mu."""

    batch_size = "auto"
    sampling = "poisson"


class DPGDClassifier(GLMClassifier, _DescentFit):
    """Logistic or softmax regression by differentially private gradient descent.

    A fixed number of noisy steps on full gradients (Wang, Ye & Xu [1]_), with the nonconvex or the l2 penalty.
    The guarantee is (epsilon, delta)-differential privacy for one fit, under the given ``adjacency`` and
    ``unit``; `privacy_` says what it rests on.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
    max_iter : int or "auto", default="auto"
        Number of steps, each of which reads all records. "auto" is between 20 and 100, from public numbers:
        ``n mu / (8 sqrt(p))`` with p parameters and the mu of (epsilon, delta). Every step is paid for, so
        there is no stopping rule.
    learning_rate : float or "auto", default="auto"
        A number is used literally, and the last iterate is the result. "auto" takes dual averaging with a step
        size computed from released gradients and known noise (user guide of `DPIGHTClassifier`), which costs
        nothing and needs no tuning; the result is its average.
    clip_norm : float or "adaptive", default="adaptive"
        Largest l2 norm of one record's (or group's) gradient. "adaptive" spends 2 % of the budget (of mu^2; up
        to 20 % where records are few) on the median row norm, for groups also on the median gradient norm at the
        start; the clip norm is 0.5 to 1.4 times the median gradient norm at the start, more where the budget
        sees more (user guide). Where ``learning_rate`` and ``clip_norm`` are both numbers nothing is asked.
    penalty : {"nonconvex", "l2"}, default="nonconvex"
        ``alpha * sum_j w_j^2 / (1 + w_j^2)``, or ``alpha / 2 * ||w||^2``. The intercept is never penalised.
    alpha : float, default=1e-3
        Weight of the penalty, added to the mean loss, >= 0.
    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.
    classes : sequence of labels, default=None
        The public label set. None infers it from y, warns `PrivacyLeakWarning` and says so in the report.
    coef_init : array-like, default=None
        Where to start: a released model's ``coef_``, or ``coef_`` with the intercept as a last column.
        Costs nothing.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        What a neighbouring data set is. "add-remove" needs ``n_public``.
    unit : {"record", "group"}, default="record"
        Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`.
    n_public : int, default=None
        Public number that means divide by; None takes the number of records (or groups), which is public
        except under "add-remove".
    max_weight : float, default=None
        Public upper bound of ``sample_weight`` in `fit`, which needs it; weights are clipped to it.
    accountant : BudgetAccountant or False, default=None
        Charged with (epsilon, delta) by each fit. None takes that of the innermost ``with accountant:``;
        False charges none, also inside such a block.
    random_state : None, int, RandomState or Generator, default=None
        None draws a fresh key from the operating system. Anything else is for tests only: whoever knows
        the seed can subtract the noise.
    verbose : bool, default=False
        Whether to show a progress bar.
    callback : callable, default=None
        Called as ``callback(iteration, coef)`` with each released iterate.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of int64
        Indices of the features whose coefficient is not 0.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted, also those absent from y.
    n_iter_ : int
        Number of steps.
    learning_rate_ : float
        The step size given, or the last one that "auto" took.
    clip_norm_ : float
        The clip norm given, or the one that was released.
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

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

    _algorithm = staticmethod(gradient_descent)

    def _settings(self) -> StepSettings:
        return StepSettings(**self._numbers("max_iter", "learning_rate", "clip_norm"))


class DPRRPSGDClassifier(GLMClassifier, StochasticFit):
    """Logistic or softmax regression by random round private stochastic gradient descent.

    Noisy steps on minibatches; the result is the iterate of a round that is drawn uniformly before the records
    are touched (Zhang, Zheng, Mou & Wang [1]_), with the nonconvex or the l2 penalty. The guarantee is (epsilon,
    delta)-differential privacy for one fit, under the given ``adjacency`` and ``unit``; `privacy_` says what
    it rests on.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
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
    clip_norm : float or "adaptive", default="adaptive"
        Largest l2 norm of one record's (or group's) gradient. "adaptive" spends 2 % of the budget (of mu^2; up
        to 20 % where records are few) on the median row norm, for groups also on the median gradient norm at the
        start; the clip norm is 0.5 to 1.4 times the median gradient norm at the start, more where the budget
        sees more (user guide). Where ``learning_rate`` and ``clip_norm`` are both numbers nothing is asked.
    penalty : {"nonconvex", "l2"}, default="nonconvex"
        ``alpha * sum_j w_j^2 / (1 + w_j^2)``, or ``alpha / 2 * ||w||^2``. The intercept is never penalised.
    alpha : float, default=1e-3
        Weight of the penalty, added to the mean loss, >= 0.
    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.
    classes : sequence of labels, default=None
        The public label set. None infers it from y, warns `PrivacyLeakWarning` and says so in the report.
    coef_init : array-like, default=None
        Where to start: a released model's ``coef_``, or ``coef_`` with the intercept as a last column.
        Costs nothing.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        What a neighbouring data set is. "add-remove" needs ``n_public``.
    unit : {"record", "group"}, default="record"
        Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`.
    n_public : int, default=None
        Public number that means divide by; None takes the number of records (or groups), which is public
        except under "add-remove".
    max_weight : float, default=None
        Public upper bound of ``sample_weight`` in `fit`, which needs it; weights are clipped to it.
    accountant : BudgetAccountant or False, default=None
        Charged with (epsilon, delta) by each fit. None takes that of the innermost ``with accountant:``;
        False charges none, also inside such a block.
    random_state : None, int, RandomState or Generator, default=None
        None draws a fresh key from the operating system. Anything else is for tests only: whoever knows
        the seed can subtract the noise.
    verbose : bool, default=False
        Whether to show a progress bar.
    callback : callable, default=None
        Called as ``callback(iteration, coef)`` with each released iterate.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of int64
        Indices of the features whose coefficient is not 0.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted, also those absent from y.
    n_iter_ : int
        The round that was drawn: number of steps that were taken. It does not depend on the records.
    learning_rate_ : float
        The step size.
    clip_norm_ : float
        The clip norm given, or the one that was released.
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

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

    _algorithm = staticmethod(random_round)

    def _settings(self) -> BatchSettings:
        numbers = self._numbers("max_iter", "learning_rate", "clip_norm", "batch_size")
        return BatchSettings(**numbers, sampling=SAMPLING[self.sampling])


class DPAGDClassifier(GLMClassifier, _DescentFit):
    """Logistic or softmax regression by private gradient descent with an adaptive budget.

    Noisy full gradients, each followed by a private choice of how far to go along it; where "not at all" wins,
    the gradient is measured again with more budget (Lee & Kifer [1]_). With the nonconvex or the l2 penalty. The
    guarantee is (epsilon, delta)-differential privacy for one fit, under the given ``adjacency`` and ``unit``;
    `privacy_` says what it rests on.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
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
    clip_norm : float or "adaptive", default="adaptive"
        Largest l2 norm of one record's (or group's) gradient. "adaptive" spends 2 % of the budget (of mu^2; up
        to 20 % where records are few) on the median row norm, for groups also on the median gradient norm at the
        start; the clip norm is 0.5 to 1.4 times the median gradient norm at the start, more where the budget
        sees more (user guide). Where ``learning_rate`` and ``clip_norm`` are both numbers nothing is asked.
    penalty : {"nonconvex", "l2"}, default="nonconvex"
        ``alpha * sum_j w_j^2 / (1 + w_j^2)``, or ``alpha / 2 * ||w||^2``. The intercept is never penalised.
    alpha : float, default=1e-3
        Weight of the penalty, added to the mean loss, >= 0.
    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.
    classes : sequence of labels, default=None
        The public label set. None infers it from y, warns `PrivacyLeakWarning` and says so in the report.
    coef_init : array-like, default=None
        Where to start: a released model's ``coef_``, or ``coef_`` with the intercept as a last column.
        Costs nothing.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        What a neighbouring data set is. "add-remove" needs ``n_public``.
    unit : {"record", "group"}, default="record"
        Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`.
    n_public : int, default=None
        Public number that means divide by; None takes the number of records (or groups), which is public
        except under "add-remove".
    max_weight : float, default=None
        Public upper bound of ``sample_weight`` in `fit`, which needs it; weights are clipped to it.
    accountant : BudgetAccountant or False, default=None
        Charged with (epsilon, delta) by each fit. None takes that of the innermost ``with accountant:``;
        False charges none, also inside such a block.
    random_state : None, int, RandomState or Generator, default=None
        None draws a fresh key from the operating system. Anything else is for tests only: whoever knows
        the seed can subtract the noise.
    verbose : bool, default=False
        Whether to show a progress bar.
    callback : callable, default=None
        Called as ``callback(iteration, coef)`` with each released iterate.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of int64
        Indices of the features whose coefficient is not 0.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted, also those absent from y.
    n_iter_ : int
        Number of steps. It depends on released values only.
    learning_rate_ : float
        The largest distance that the first steps might go, given or of "auto".
    last_distance_ : float
        The distance of the last step; 0 where its choice found nothing better than to stay.
    clip_norm_ : float
        The clip norm given, or the one that was released.
    loss_bound_ : float
        The loss bound given, or the one of "auto".
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

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

    _algorithm = staticmethod(adaptive_descent)

    def _settings(self) -> AdaptiveSettings:
        return AdaptiveSettings(
            **self._numbers("max_iter", "learning_rate", "clip_norm", "loss_bound")
        )
