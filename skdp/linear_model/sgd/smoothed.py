"""The estimators of Laplacian smoothing SGD, and the fit they share with plain SGD."""

import math
from numbers import Real
from typing import Any

from skdp.base import check_choice, check_number
from skdp.linear_model.glm import GLMClassifier, GLMRegressor
from skdp.linear_model.parts.stochastic import SAMPLING, StochasticFit
from skdp.linear_model.parts.task import given
from skdp.linear_model.sgd.solver import (
    AVERAGE,
    SCHEDULES,
    SOLVERS,
    Settings,
    stochastic_descent,
)

__all__ = ["DPLSSGDClassifier", "DPLSSGDRegressor", "StochasticDescentFit"]


class StochasticDescentFit(StochasticFit):
    """A fit by `stochastic_descent`; without a parameter ``smoothing`` nothing is smoothed."""

    smoothing = 0.0
    schedule: str
    momentum: float
    solver: str
    average: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("smoothing", self.smoothing, Real, low=0)
        check_number("momentum", self.momentum, Real, low=0)
        check_number("average", self.average, Real, low=0, word="auto", none=True)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("solver", self.solver, SOLVERS)
        if self.momentum >= 1:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum!r}")
        for name in ("smoothing", "average"):
            value = getattr(self, name)
            if isinstance(value, Real) and math.isinf(value):
                raise ValueError(f"{name} must be finite, got inf")

    _algorithm = staticmethod(stochastic_descent)

    def _settings(self) -> Settings:
        average = self.average
        if isinstance(average, str):  # iterates of the user's own step size are not averaged
            average = AVERAGE if given(self.learning_rate) is None else None
        return Settings(
            **self._numbers("max_iter", "learning_rate", "clip_norm", "batch_size"),
            sampling=SAMPLING[self.sampling],
            smoothing=float(self.smoothing),
            momentum=float(self.momentum),
            solver=self.solver,
            schedule=self.schedule,
            average=average,
        )


class DPLSSGDClassifier(GLMClassifier, StochasticDescentFit):
    """Logistic or softmax regression by differentially private Laplacian smoothing SGD.

    Steps along noisy clipped gradients, each smoothed over neighbouring features: DP-LSSGD [1]_ [2]_. The
    guarantee is (epsilon, delta)-differential privacy for one fit, under the given ``adjacency`` and ``unit``;
    `privacy_` says what it rests on.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
    smoothing : float, default=1.0
        s >= 0 of the matrix I - s L, by whose inverse every noisy gradient is multiplied; the published values are
        1 to 3. Features that are neighbours in X should be neighbours in the model (pixels, times, sorted bins);
        0 is `DPSGDClassifier`. Each class has its own system; the intercept is left out.
    batch_size : int or "auto", default="auto"
        Expected number of records (or groups) in a batch, which means divide by; n or more, and "auto", take all
        of them in every step, which is most accurate for the same budget.
        With batches raise ``max_iter``, which counts steps, not epochs: n / batch_size steps read the data once.
    sampling : {"poisson", "without_replacement"}, default="poisson"
        How smaller batches are drawn. Without replacement needs more noise and replace-one adjacency.
    max_iter : int or "auto", default="auto"
        Number of noisy steps, not of epochs; "auto" is 100, also with small batches. Every step is paid for, so
        there is no stopping rule.
    learning_rate : float or "auto", default="auto"
        A number is used literally. "auto" takes steps as long as the noise and the curvature allow, computed from
        public and released numbers (user guide), which costs nothing and needs no tuning.
    schedule : {"constant", "inverse", "inverse-sqrt"}, default="constant"
        Step t = 1, 2, ... is ``learning_rate`` times 1, 1/t (as published) or 1/sqrt(t).
    momentum : float, default=0.9
        In [0, 1): ``v <- momentum * v + u``, and a step subtracts v; 0 is the published method. For Adam the
        decay of its first moment.
    solver : {"sgd", "adam"}, default="sgd"
        Adam divides each coordinate by the root of its second moment (decay 0.999).
    average : float, "auto" or None, default="auto"
        The result is the mean of the iterates with weights ``t ** average`` (0: all the same), or the last one
        (None). "auto" is 6 with ``learning_rate="auto"``, else None.
    clip_norm : float or "adaptive", default="adaptive"
        Largest l2 norm of one record's (or group's) gradient. "adaptive" spends 2 % of the budget (of mu^2; up
        to 20 % where records are few) on the median row norm and, for regression and groups, on the median
        gradient norm at the start; the clip norm is half the latter. With a number and ``learning_rate="auto"``
        they still go to the length of the steps; only where both are numbers nothing is asked.
    penalty : {"l2", "nonconvex"}, default="l2"
        ``alpha / 2 * ||w||^2``, or ``alpha * sum_j w_j^2 / (1 + w_j^2)``. The intercept is never penalised.
    alpha : float, default=0.0
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
        Public number of records (or groups); None takes their real number, which is public except under
        "add-remove".
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
        Indices of the features whose coefficients are not all 0.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted, also those absent from y.
    n_iter_ : int
        Number of steps.
    learning_rate_ : float
        Step size of the first step: the one given, or that of "auto".
    clip_norm_ : float
        The clip norm given, or the one that was released.
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    See Also
    --------
    DPSGDClassifier : The same without smoothing.
    DPIGHTClassifier : Steps on full batches that keep a number of features.

    Notes
    -----
    A batch's mean of clipped gradients moves by at most ``2 clip_norm / batch_size`` in l2 norm when a record (or
    group) in it is replaced, by half of that under the other adjacencies. Steps on all records compose as exact
    Gaussian DP; for Poisson batches the noise is calibrated by privacy loss distributions of the sampled Gaussian
    (under replace-one by its dominating pair), for batches without replacement by Renyi DP. What
    is done with a released gradient (smoothing, momentum, Adam, averaging) is post-processing and costs nothing.
    Remark 5.5.6 of [1]_, that smoothing lowers the sensitivity, is no guarantee and is not used.

    References
    ----------
    .. [1] L. Wang, "Towards efficient and effective privacy-preserving machine learning", dissertation, UCLA,
       2021, ch. 5, Algorithm 5.
    .. [2] B. Wang, Q. Gu, M. Boedihardjo, L. Wang, F. Barekat and S. J. Osher, "DP-LSSGD: a stochastic
       optimization method to lift the utility in privacy-preserving ERM", MSML 2020.

    Examples
    --------
    >>> from skdp import DPLSSGDClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPLSSGDClassifier(epsilon=2.0, batch_size=500, classes=(0, 1)).fit(X, y)
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
        smoothing=1.0,
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
        self.smoothing = smoothing
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


class DPLSSGDRegressor(GLMRegressor, StochasticDescentFit):
    """Linear regression by differentially private Laplacian smoothing SGD.

    Steps along noisy clipped gradients, each smoothed over neighbouring features: DP-LSSGD [1]_ [2]_. The
    guarantee is (epsilon, delta)-differential privacy for one fit, under the given ``adjacency`` and ``unit``;
    `privacy_` says what it rests on.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
    smoothing : float, default=1.0
        s >= 0 of the matrix I - s L, by whose inverse every noisy gradient is multiplied; the published values are
        1 to 3. Features that are neighbours in X should be neighbours in the model (pixels, times, sorted bins);
        0 is `DPSGDRegressor`. Each class has its own system; the intercept is left out.
    loss : {"squared", "huber"}, default="squared"
        Huber's loss is linear beyond ``huber_threshold``; squared gradients are clipped all the same.
    huber_threshold : float, default=1.0
        Residual at which Huber's loss becomes linear, in units of y, > 0.
    batch_size : int or "auto", default="auto"
        Expected number of records (or groups) in a batch, which means divide by; n or more, and "auto", take all
        of them in every step, which is most accurate for the same budget.
        With batches raise ``max_iter``, which counts steps, not epochs: n / batch_size steps read the data once.
    sampling : {"poisson", "without_replacement"}, default="poisson"
        How smaller batches are drawn. Without replacement needs more noise and replace-one adjacency.
    max_iter : int or "auto", default="auto"
        Number of noisy steps, not of epochs; "auto" is 100, also with small batches. Every step is paid for, so
        there is no stopping rule.
    learning_rate : float or "auto", default="auto"
        A number is used literally. "auto" takes steps as long as the noise and the curvature allow, computed from
        public and released numbers (user guide), which costs nothing and needs no tuning.
    schedule : {"constant", "inverse", "inverse-sqrt"}, default="constant"
        Step t = 1, 2, ... is ``learning_rate`` times 1, 1/t (as published) or 1/sqrt(t).
    momentum : float, default=0.9
        In [0, 1): ``v <- momentum * v + u``, and a step subtracts v; 0 is the published method. For Adam the
        decay of its first moment.
    solver : {"sgd", "adam"}, default="sgd"
        Adam divides each coordinate by the root of its second moment (decay 0.999).
    average : float, "auto" or None, default="auto"
        The result is the mean of the iterates with weights ``t ** average`` (0: all the same), or the last one
        (None). "auto" is 6 with ``learning_rate="auto"``, else None.
    clip_norm : float or "adaptive", default="adaptive"
        Largest l2 norm of one record's (or group's) gradient. "adaptive" spends 2 % of the budget (of mu^2; up
        to 20 % where records are few) on the median row norm and, for regression and groups, on the median
        gradient norm at the start; the clip norm is half the latter. With a number and ``learning_rate="auto"``
        they still go to the length of the steps; only where both are numbers nothing is asked. With an intercept
        another 5 % (up to 20 % where records are few) go to the median of y, which the steps see subtracted. Where
        both are numbers, or the records fewer than 50 / mu, subtract a public centre of y yourself.
    penalty : {"l2", "nonconvex"}, default="l2"
        ``alpha / 2 * ||w||^2``, or ``alpha * sum_j w_j^2 / (1 + w_j^2)``. The intercept is never penalised.
    alpha : float, default=0.0
        Weight of the penalty, added to the mean loss, >= 0.
    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.
    coef_init : array-like, default=None
        Where to start: a released model's ``coef_``, or ``coef_`` with the intercept as a last column.
        Costs nothing.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        What a neighbouring data set is. "add-remove" needs ``n_public``.
    unit : {"record", "group"}, default="record"
        Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`.
    n_public : int, default=None
        Public number of records (or groups); None takes their real number, which is public except under
        "add-remove".
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
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    support_ : ndarray of int64
        Indices of the features whose coefficient is not 0.
    n_iter_ : int
        Number of steps.
    learning_rate_ : float
        Step size of the first step: the one given, or that of "auto".
    clip_norm_ : float
        The clip norm given, or the one that was released.
    target_center_ : float
        What was released as the centre of y, 0 where nothing was.
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    See Also
    --------
    DPSGDRegressor : The same without smoothing.
    DPIGHTRegressor : Steps on full batches that keep a number of features.

    Notes
    -----
    A batch's mean of clipped gradients moves by at most ``2 clip_norm / batch_size`` in l2 norm when a record (or
    group) in it is replaced, by half of that under the other adjacencies. Steps on all records compose as exact
    Gaussian DP; for Poisson batches the noise is calibrated by privacy loss distributions of the sampled Gaussian
    (under replace-one by its dominating pair), for batches without replacement by Renyi DP. What
    is done with a released gradient (smoothing, momentum, Adam, averaging) is post-processing and costs nothing.
    Remark 5.5.6 of [1]_, that smoothing lowers the sensitivity, is no guarantee and is not used.

    References
    ----------
    .. [1] L. Wang, "Towards efficient and effective privacy-preserving machine learning", dissertation, UCLA,
       2021, ch. 5, Algorithm 5.
    .. [2] B. Wang, Q. Gu, M. Boedihardjo, L. Wang, F. Barekat and S. J. Osher, "DP-LSSGD: a stochastic
       optimization method to lift the utility in privacy-preserving ERM", MSML 2020.

    Examples
    --------
    >>> from skdp import DPLSSGDRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 20, n_informative=3, random_state=0)
    >>> model = DPLSSGDRegressor(epsilon=2.0).fit(X, y)
    >>> model.coef_.shape, model.n_iter_, model.privacy_.epsilon
    ((20,), 100, 2.0)
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        smoothing=1.0,
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
        self.smoothing = smoothing
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
