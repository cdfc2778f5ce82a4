"""The estimators of iterative gradient hard thresholding; the algorithm is in `solver`."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skdp._docs import document
from skdp.base.declare import changed, fitted, fixed, parameter
from skdp.base.exact import NonPrivateFit
from skdp.base.fit import PrivateFit
from skdp.base.kinds import choice, real
from skdp.base.plan import Advice, BudgetSplit
from skdp.base.problem import Solution
from skdp.fitting import parameters
from skdp.fitting.closing import Closing, LinearDecision, TargetUnits
from skdp.fitting.linear import LinearFit
from skdp.fitting.parameters import Auto, AutoInt, ClassLoss, NumberLoss
from skdp.fitting.targets import LabelModel, NumberModel, Problem, is_classifier
from skdp.fitting.task import (
    L2Penalty,
    Task,
    check_clip,
    check_features,
    given,
    linear_progress,
    parameter_shape,
    start_point,
)
from skdp.linear_model.ight.solver import IGHTSettings, planned_thresholding, solve
from skdp.losses import NAMED, is_shipped
from skdp.privacy import PrivacySession

EXACT_MAX_ITER = 1000  # steps of a fit without privacy
ERRATUM = (
    "The proof of Theorem 2.5.2 of Wang (2021) charges G^2/(n sigma)^2 a step where the sensitivity 2G/n costs "
    "2G^2/(n sigma)^2. Its claim needs twice the published variance, which this fit uses."
)


class ThresholdingFit(LinearFit):
    """The fit of all four estimators."""

    _no_blocks: ClassVar[str | None] = None

    selection: Literal["gaussian", "peeling"] = parameter(
        choice("gaussian", "peeling"),
        """"gaussian" is the paper's method: all coordinates get noise, and thresholding follows. "peeling" spends
        half of each step on choosing the support by Gumbel noise, as in [Cai2021]_. The
        other half adds Gaussian noise to the chosen coordinates only.""",
        default="gaussian",
    )
    refit: Auto = parameter(
        parameters.SHARE,
        """Share in [0, 1) of the budget that is kept for gradient steps on the surviving features only. "auto" is
        0.3 wherever features are cut off; it is 0 for a classifier that keeps more than ``2 sqrt(n mu)``
        coefficients, with less than 10 steps and with a number for ``learning_rate``. In rounds (see
        ``max_iter``) it is about a quarter. It has no effect without thresholding.""",
        default="auto",
    )
    clip_norm: Auto = parameters.HALF_CLIP_NORM
    max_weight: float | None = parameters.MAX_WEIGHT
    n_nonzero_coefs: int | None = parameters.N_NONZERO_COEFS
    max_iter: AutoInt = parameters.more(
        parameters.MAX_ITER,
        """
        The steps of the refit are included. "auto" is 100, or two to five rounds of 20 or 40 steps. A round
        chooses features and then takes its steps on these alone (user guide). Rounds are used if all of this
        holds: ``refit``, ``clip_norm`` and ``learning_rate`` have their defaults; the start is 0; ``selection`` is
        "gaussian"; at most a tenth of the features and at most ``2 sqrt(n mu)`` coefficients are kept.""",
    )
    learning_rate: Auto = parameters.more(
        parameters.LEARNING_RATE,
        """
        With a number each step is ``theta <- H_s(theta - learning_rate * gradient)``, and the last iterate is
        the result. "auto" is dual averaging, which needs no tuning (user guide). ``clip_norm=inf`` is allowed
        with ``epsilon=inf`` only; "auto" then takes the steps of the class without privacy.""",
    )
    alpha: float = parameter(
        real(low=0, finite=True),
        """Weight of the l2 penalty ``alpha / 2 * ||coef||^2``, which is added to the mean loss. The intercept is
        not penalised.""",
        default=0.0,
    )
    coef_init: object = parameters.COEF_INIT
    verbose: bool = parameters.VERBOSE
    callback: Callable[..., object] | None = parameters.CALLBACK
    n_iter_: int = fitted("int", "Number of gradient steps, including the steps of the refit.")
    learning_rate_: float = fitted()
    clip_norm_: float = fitted()

    _erratum = ERRATUM

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_clip("clip_norm", self.clip_norm, self.epsilon)

    def _settings(self) -> IGHTSettings:
        """The parameters as the algorithm takes them: no words."""
        return IGHTSettings(
            n_nonzero_coefs=self.n_nonzero_coefs,
            max_iter=given(self.max_iter),
            learning_rate=given(self.learning_rate),
            clip_norm=given(self.clip_norm),
            refit=given(self.refit),
            selection=self.selection,
        )

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        if is_classifier(self):
            return super()._closing(problem)
        return (TargetUnits.of(self, searched=self._settings().adaptive and is_shipped(problem.loss)),)

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        check_features(self.n_nonzero_coefs, problem.records.n_features)
        task = self._task(budget, problem)
        # A given intercept will be moved by the centre of the targets, which is not known yet.
        moved = task.theta if is_classifier(self) else self._start(problem, 1.0)
        from_zero = not task.theta.any() and not moved.any()
        return planned_thresholding(task, self._settings(), from_zero=from_zero)

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        with linear_progress(self, session) as monitor:
            task = replace(self._task(problem.budget, problem), monitor=monitor)
            return solve(task, problem.decision.details)

    def _task(self, budget: BudgetSplit, problem: Problem) -> Task:
        penalty = L2Penalty(self.alpha, problem.records.n_features)
        start = self._start(problem, problem.center)
        return Task(budget, problem.records, problem.loss, start, penalty=penalty)

    def _start(self, problem: Problem, center: float) -> np.ndarray:
        return start_point(
            self.coef_init,
            parameter_shape(problem.records, problem.loss),
            problem.records.n_features,
            fit_intercept=self.fit_intercept,
            center=center,
        )


class NonPrivateThresholdingFit(ThresholdingFit):
    """The fit without privacy: the same algorithm, without a clip and a refit, and with a rule to stop."""

    selection: Literal["gaussian"] = fixed(default="gaussian")
    refit: float = fixed(default=0.0)
    clip_norm: float = fixed(default=math.inf)
    max_weight: float = fixed(default=math.inf)
    max_iter = changed(text='Largest number of gradient steps. "auto" is 1000.')
    learning_rate = changed(
        text="""Step size. A number is used in every step: ``theta <- H_s(theta - learning_rate * gradient)``.
        "auto" is one over the largest curvature of the mean loss and the penalty, which 30 steps of power
        iteration estimate; the estimate is raised by 5 %. Its steps have Nesterov's momentum, which starts anew
        when it points uphill, as in [ODonoghue2015]_. The last iterate is the result."""
    )
    coef_init: object = parameters.EXACT_COEF_INIT
    tol: float = parameter(
        real(low=0),
        """Stop when a step moves the parameters by at most ``tol`` times their norm. 0 takes all
        ``max_iter`` steps.""",
        default=1e-4,
    )
    n_iter_: int = fitted("int", "Number of gradient steps.")
    learning_rate_: float = fitted(
        "float", 'The given step size, or the one that "auto" chose. It is the same in every step.'
    )
    clip_norm_: float = fitted("float", "Always inf, because nothing is clipped.")

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        found = super().solve(session, problem)
        if not self.tol or found.converged or given(self.max_iter) is not None:
            return found
        text = (
            f"the steps did not become smaller than tol={self.tol:g} within {EXACT_MAX_ITER} iterations; "
            "scale the features, set max_iter and tol, or alpha > 0 if the classes are separable"
        )
        return replace(found, warnings=(Advice(text, ConvergenceWarning),))

    def _settings(self) -> IGHTSettings:
        settings = replace(super()._settings(), tol=self.tol)
        return settings if settings.max_iter else replace(settings, max_iter=EXACT_MAX_ITER)


@document()
class DPIGHTClassifier(ThresholdingFit, LabelModel, PrivateFit[Problem]):
    """Sparse logistic or softmax regression that is differentially private.

    DP-IGHT, private iterative gradient hard thresholding, of [WangGu2019]_ and [Wang2021]_. Each step follows a
    noisy gradient and keeps the ``n_nonzero_coefs`` features with the largest coefficients.

    {guarantee}

    {recalibrated}

    See Also
    --------
    IGHTClassifier : The same without privacy.

    Notes
    -----
    {privacy.full_batch}
    The noise follows the exact formula of [Balle2018]_. Sums are taken in fixed point. The noise is rounded to the
    same grid, which is post-processing of the continuous Gaussian mechanism.

    With ``selection="peeling"`` a score is the magnitude of a coefficient after a step. A norm is 1-Lipschitz,
    so one record moves a score by at most ``learning_rate`` times its move of the mean gradient. Each choice by
    Gumbel noise of twice that over eps0 is an eps0-bounded-range choice, which is charged by its mu.

    Erratum of [Wang2021]_: the proof of Theorem 2.5.2 charges a step half of the cost of its sensitivity 2G/n. Its
    claim needs twice the published variance, which is used here.

    {privacy.unprotected}

    References
    ----------
    .. [WangGu2019]
    .. [Wang2021] Chapter 2, Algorithms 1 and 3, Theorem 2.5.2.
    .. [Balle2018]
    .. [Cai2021]

    Examples
    --------
    >>> from skdp import DPIGHTClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 50, n_informative=3, random_state=0)
    >>> model = DPIGHTClassifier(epsilon=2.0, n_nonzero_coefs=5, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, len(model.support_)
    ((1, 50), 5)
    >>> model.privacy_.epsilon, model.privacy_.delta
    (2.0, 1e-05)
    """

    loss: ClassLoss = parameters.CLASS_LOSS
    n_nonzero_coefs = changed(more=parameters.CLASS_NORMS)


@document(DPIGHTClassifier)
class DPIGHTRegressor(ThresholdingFit, NumberModel, PrivateFit[Problem]):
    """Sparse linear regression that is differentially private.

    DP-IGHT, private iterative gradient hard thresholding, of [WangGu2019]_ and [Wang2021]_,
    with the squared or Huber's loss. Each step follows a noisy gradient and keeps the ``n_nonzero_coefs``
    features with the largest coefficients. Targets need no bound, because gradients are clipped.

    {guarantee}

    See Also
    --------
    IGHTRegressor : The same without privacy.

    Notes
    -----
    {Notes}

    {privacy.targets}

    Examples
    --------
    >>> from skdp import DPIGHTRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 50, n_informative=3, random_state=0)
    >>> model = DPIGHTRegressor(epsilon=2.0, n_nonzero_coefs=5).fit(X, y)
    >>> model.coef_.shape, len(model.support_)
    ((50,), 5)
    >>> model.privacy_.guarantee
    'proven'
    """

    loss: NumberLoss = parameters.LOSS
    huber_threshold: float = parameters.HUBER_THRESHOLD


@document(DPIGHTClassifier)
class IGHTClassifier(NonPrivateThresholdingFit, LabelModel, NonPrivateFit[Problem]):
    """Sparse logistic or softmax regression by iterative gradient hard thresholding, not private.

    Each step follows the gradient and keeps the ``n_nonzero_coefs`` features with the largest coefficients.
    The method follows [Jain2014]_ and [Yuan2014]_.

    See Also
    --------
    DPIGHTClassifier : The same with privacy.

    Notes
    -----
    **Privacy.** This class is not private: it releases exact values.

    The private class and this one run the same algorithm; here a session releases exact values. Both give the
    same model at ``epsilon=inf, clip_norm=inf, refit=0`` there, ``tol=0`` here, ``max_iter`` a number, and the
    other parameters equal.

    References
    ----------
    .. [Jain2014]
    .. [Yuan2014]
    .. [ODonoghue2015]

    Examples
    --------
    >>> from skdp import IGHTClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 50, n_informative=3, random_state=0)
    >>> len(IGHTClassifier(n_nonzero_coefs=3).fit(X, y).support_)
    3
    """

    loss: ClassLoss = parameters.CLASS_LOSS
    n_nonzero_coefs = changed(more=parameters.CLASS_NORMS)
    classes: Iterable[object] | None = parameters.EXACT_CLASSES
    class_weight: object = parameters.EXACT_CLASS_WEIGHT


@document(IGHTClassifier)
class IGHTRegressor(NonPrivateThresholdingFit, NumberModel, NonPrivateFit[Problem]):
    """Sparse linear regression by iterative gradient hard thresholding, not private.

    Each step follows the gradient of the squared or Huber's loss and keeps the ``n_nonzero_coefs`` features with
    the largest coefficients. The method follows [Jain2014]_ and [Yuan2014]_.

    See Also
    --------
    DPIGHTRegressor : The same with privacy; its predictions are cut to bounds.

    Examples
    --------
    >>> from skdp import IGHTRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 50, n_informative=3, random_state=0)
    >>> bool(IGHTRegressor(n_nonzero_coefs=3).fit(X, y).score(X, y) > 0.8)
    True
    """

    loss: NumberLoss = parameter(
        parameters.WordOrLoss(tuple(NAMED), classes=False),
        """Huber's loss is linear beyond ``huber_threshold``. A loss of your own inherits from `skdp.losses.Loss`;
        `predict` gives its linear predictor.""",
        default="squared",
    )
    huber_threshold: float = parameters.HUBER_THRESHOLD
    bounded: bool = fixed(default=False)
    coef_: object = fitted("ndarray of shape (n_features,)", "Coefficients of the features.")
    prediction_bounds_: tuple[float, float] = fitted(is_set=False)
    shrinkage_: float = fitted(is_set=False)
