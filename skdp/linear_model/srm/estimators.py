"""The estimators of stochastic recursive momentum: parameters here, the algorithm in `solver`."""

import math
from numbers import Integral, Real
from typing import Any

from sklearn.base import BaseEstimator

from skdp.base import check_choice, check_flag, check_number, replace_fitted
from skdp.linear_model.frame import model_attributes
from skdp.linear_model.glm import GLMClassifier
from skdp.linear_model.parts.checks import check_clip
from skdp.linear_model.parts.stochastic import (
    SAMPLING,
    StochasticFit,
    StochasticRun,
    check_common,
)
from skdp.linear_model.parts.task import given
from skdp.linear_model.srm.solver import Settings, recursive_momentum
from skdp.privacy.session import PrivacySession

__all__ = ["DPSRMClassifier", "STORMClassifier"]

ERRATUM = "Section 4.7.1 of Wang (2021) swaps the two clip norms; this fit uses the correct order."

# Days of steps. Batches of a few records of many would be paid for even then.
MOST_STEPS_GIVEN = 10**8


class _MomentumFit(StochasticRun):
    """What the private and the exact fit share."""

    batch_size: int | str
    initial_batch_size: int | str
    max_iter: int | str
    momentum: float | str
    learning_rate: float | str
    max_step_norm: float | str
    sampling: str
    output: str

    def _check_momentum(self) -> None:
        check_number("max_iter", self.max_iter, Integral, low=1, high=MOST_STEPS_GIVEN, word="auto")
        check_number("initial_batch_size", self.initial_batch_size, Integral, low=1, word="auto")
        check_number("momentum", self.momentum, Real, low=0, high=1, word="auto")
        check_number("max_step_norm", self.max_step_norm, Real, low=0, strict=True, word="auto")
        check_choice("output", self.output, ("last", "random"))

    _algorithm = staticmethod(recursive_momentum)

    def _settings(self) -> Settings:
        names = ("max_iter", "batch_size", "initial_batch_size", "momentum", "learning_rate")
        return Settings(
            **self._numbers(*names, "max_step_norm", "clip_norm", "clip_diff_norm"),
            sampling=SAMPLING[self.sampling],
            output=self.output,
        )


class DPSRMClassifier(GLMClassifier, _MomentumFit, StochasticFit):
    """Logistic or softmax regression by differentially private stochastic recursive momentum.

    DP-SRM [1]_: steps along a released estimate of the gradient, which each minibatch corrects by how its
    gradients changed since the last step and moves, by the momentum, towards its gradients; with the nonconvex
    or the l2 penalty. Few passes over the data suffice. The guarantee is (epsilon, delta)-differential privacy
    for one fit, under the given ``adjacency`` and ``unit``; `privacy_` says what it rests on.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
    max_iter : int or "auto", default="auto"
        Number of steps, at most 10^8. "auto" is ``1.65 n mu / sqrt(p)``, with p parameters and the mu of
        (epsilon, delta), at most 2000, at most what leaves batches of 16, and at least 20. With a ``batch_size``
        that is given it is what makes four passes over the data, but at least 20 steps: batches of more than
        18 % of the records make more passes, all records 20. Every step is paid for, so there is no stopping
        rule.
    batch_size : int or "auto", default="auto"
        Expected number b of records (or groups) in a minibatch; means are divided by it. With the number of
        records, or more, all are used. "auto" is what makes four passes over the data in ``max_iter`` steps; a
        pass reads every record once, and a step computes two gradients of a record.
    initial_batch_size : int or "auto", default="auto"
        The same for the first batch, b0. "auto" is 3 times ``batch_size``.
    momentum : float or "auto", default="auto"
        g in [0, 1], the weight of the new gradients: 1 is plain SGD. A number is used in every step. "auto" falls
        linearly from ``14 / max_iter`` to ``5.8 / max_iter`` (1 at most), and then the noise of the first half
        has 1.45 times the multiplier of the second.
    clip_norm : float or "adaptive", default="adaptive"
        Largest l2 norm C1 of one record's (or group's) gradient. A number is used in every step. "adaptive"
        spends 2 % of the budget (of mu^2; up to 20 % where records are few) on the median row norm, for groups
        also on the median gradient norm at the start; the clip norm is 0.63 to 0.84 times what a median record's
        gradient is at most, more where the budget sees more (user guide), and 0.65 of that in the beginning.
        Where ``learning_rate`` and ``clip_norm`` are both numbers nothing is asked.
    clip_diff_norm : float or "auto", default="auto"
        Largest l2 norm C2 of the change of one record's (or group's) gradient in one step. "auto" is
        ``0.41 clip_norm / max_iter``.
    learning_rate : float or "auto", default="auto"
        Largest step size, 1 / (2 n0 L) in [1]_. A number is used in every step. "auto" is 1.16 over the
        smoothness that the median row norm tells, up to 1.55 where the clip norm is small, and falls linearly
        by 15 %.
    max_step_norm : float or "auto", default="auto"
        Length of the longest step, zeta / (n0 L) in [1]_; inf for none. "auto" is
        ``60 / (row_norm * max_iter)`` with the released median row norm, or none where ``clip_norm`` and
        ``learning_rate`` are both numbers.
    output : {"last", "random"}, default="last"
        The last iterate; or, as in [1]_, one drawn uniformly from all before it, the start among them: the
        theorem is about that one, the last is much better.
    penalty : {"nonconvex", "l2"}, default="nonconvex"
        ``alpha * sum_j w_j^2 / (1 + w_j^2)``, or ``alpha / 2 * ||w||^2``. The intercept is never penalised.
    alpha : float, default=1e-3
        Weight of the penalty, added to the mean loss, >= 0.
    sampling : {"poisson", "without_replacement"}, default="poisson"
        How minibatches are drawn. "without_replacement" is the paper's; it is possible under replace-one only,
        and needs much more noise (user guide).
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
        Public number of records (or groups) that sampling rates are computed from; None takes their number,
        which is public except under "add-remove".
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
        Number of steps taken: ``max_iter``, or fewer with ``output="random"``.
    learning_rate_ : float
        What was given, or the largest step size of the first step.
    max_step_norm_ : float
        What was given, or what "auto" became.
    momentum_, clip_norm_ : float
        What was given, or the value at the last of the ``max_iter`` steps.
    clip_diff_norm_ : float
        What was given, or what "auto" became.
    batch_size_, initial_batch_size_ : int
        What was given, at most the number of records, or what "auto" became.
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    See Also
    --------
    STORMClassifier : The same without privacy.
    DPSGDClassifier : Momentum 1.

    Notes
    -----
    v_0 is a mean of gradients clipped to C1 over the first batch, and ``v_t`` is ``(1 - g) v_{t-1}``, released
    already, plus a mean over batch t of ``(1 - g) clip(grad_i(theta_t) - grad_i(theta_{t-1}), C2) + g
    clip(grad_i(theta_t), C1)``. Both are clips, so nothing is assumed of the loss: a record adds at most
    ``C1 / b0``, or ``((1 - g) C2 + g C1) / b``, in l2 norm, and replacing it moves the released mean by at most
    twice that. Minibatches are Poisson samples, whose privacy loss distributions are composed numerically; b and
    b0 are the public expected sizes. All noise is planned before the data are read, and the claim is that of the
    plan.

    Errata of [1]_: section 4.7.1 prints C1 and C2 swapped in the sensitivity and loses b; section 4.5 is right.
    The noise constants of Theorem 4.5.1 are not used.

    References
    ----------
    .. [1] L. Wang, "Towards efficient and effective privacy-preserving machine learning", dissertation,
       UCLA, 2021, ch. 4, Algorithm 4, Theorems 4.5.1 and 4.5.4 (with errata).
    .. [2] A. Cutkosky and F. Orabona, "Momentum-based variance reduction in non-convex SGD", NeurIPS 2019.

    Examples
    --------
    >>> from skdp import DPSRMClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPSRMClassifier(epsilon=2.0, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, model.n_iter_ >= 20, model.privacy_.epsilon
    ((1, 20), True, 2.0)
    """

    _erratum = ERRATUM
    _auto_samples = True

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        max_iter="auto",
        batch_size="auto",
        initial_batch_size="auto",
        momentum="auto",
        clip_norm="adaptive",
        clip_diff_norm="auto",
        learning_rate="auto",
        max_step_norm="auto",
        output="last",
        penalty="nonconvex",
        alpha=1e-3,
        sampling="poisson",
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
        self.batch_size = batch_size
        self.initial_batch_size = initial_batch_size
        self.momentum = momentum
        self.clip_norm = clip_norm
        self.clip_diff_norm = clip_diff_norm
        self.learning_rate = learning_rate
        self.max_step_norm = max_step_norm
        self.output = output
        self.penalty = penalty
        self.alpha = alpha
        self.sampling = sampling
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
        self._check_momentum()
        check_clip("clip_diff_norm", self.clip_diff_norm, self.epsilon, word="auto")
        if self.clip_diff_norm == math.inf and self.clip_norm != math.inf:
            raise ValueError("clip_diff_norm=inf needs clip_norm=inf (and epsilon=inf)")
        if self.clip_norm == math.inf and self.clip_diff_norm not in (math.inf, "auto"):
            raise ValueError('clip_norm=inf needs clip_diff_norm=inf or "auto"')

    def _may_sample(self, n_units: int | None) -> bool:
        first = given(self.initial_batch_size)
        smaller = first is not None and (n_units is None or first < n_units)
        return smaller or super()._may_sample(n_units)


class STORMClassifier(GLMClassifier, _MomentumFit, BaseEstimator):
    """Logistic or softmax regression by stochastic recursive momentum, not private.

    STORM [1]_: the algorithm of `DPSRMClassifier` without clipping and noise; the two are equal at ``epsilon=inf,
    clip_norm=inf, clip_diff_norm=inf``, the same parameters and the same ``random_state``.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Number of steps, at most 10^8; there is no stopping rule. "auto" is 2000, at most what leaves batches
        of 16, and at least 20. With a ``batch_size`` that is given it is what makes 20 passes over the data,
        but at least 20 steps.
    batch_size : int or "auto", default="auto"
        Expected number of records in a minibatch. With the number of records, or more, all are used. "auto" is
        what makes 20 passes over the data in ``max_iter`` steps.
    initial_batch_size : int or "auto", default="auto"
        The same for the first batch. "auto" is 3 times ``batch_size``.
    momentum : float or "auto", default="auto"
        g in [0, 1], the weight of the new gradients: 1 is plain SGD. A number is used in every step. "auto" falls
        linearly from ``14 / max_iter`` to ``5.8 / max_iter`` (1 at most).
    learning_rate : float or "auto", default="auto"
        Largest step size. A number is used in every step. "auto" is 1.16 over the smoothness that the median row
        norm tells, and falls linearly by 15 %.
    max_step_norm : float or "auto", default="auto"
        Length of the longest step; inf for none. "auto" is ``60 / (row_norm * max_iter)`` with the median row
        norm, or none where ``learning_rate`` is a number.
    output : {"last", "random"}, default="last"
        The last iterate; or one drawn uniformly from all before it, the start among them.
    penalty : {"nonconvex", "l2"}, default="nonconvex"
        ``alpha * sum_j w_j^2 / (1 + w_j^2)``, or ``alpha / 2 * ||w||^2``. The intercept is never penalised.
    alpha : float, default=1e-3
        Weight of the penalty, added to the mean loss, >= 0.
    sampling : {"poisson", "without_replacement"}, default="poisson"
        How minibatches are drawn.
    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.
    classes : sequence of labels, default=None
        The label set; None takes it from y.
    coef_init : array-like, default=None
        Where to start: ``coef_`` of a model, or ``coef_`` with the intercept as a last column.
    random_state : None, int, RandomState or Generator, default=None
        Of the minibatches.
    verbose : bool, default=False
        Whether to show a progress bar.
    callback : callable, default=None
        Called as ``callback(iteration, coef)`` with each iterate.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of int64
        Indices of the features whose coefficient is not 0.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted, also those absent from y.
    n_iter_ : int
        Number of steps taken: ``max_iter``, or fewer with ``output="random"``.
    learning_rate_ : float
        What was given, or the largest step size of the first step.
    max_step_norm_ : float
        What was given, or what "auto" became.
    momentum_ : float
        What was given, or the value at the last of the ``max_iter`` steps.
    clip_norm_, clip_diff_norm_ : float
        inf: nothing is clipped.
    batch_size_, initial_batch_size_ : int
        What was given, at most the number of records, or what "auto" became.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    See Also
    --------
    DPSRMClassifier : The same with privacy.

    References
    ----------
    .. [1] A. Cutkosky and F. Orabona, "Momentum-based variance reduction in non-convex SGD", NeurIPS 2019.
    .. [2] L. Wang, "Towards efficient and effective privacy-preserving machine learning", dissertation,
       UCLA, 2021, ch. 4.

    Examples
    --------
    >>> from skdp import STORMClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = STORMClassifier(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.6)
    True
    """

    n_public = None
    max_weight = clip_norm = clip_diff_norm = math.inf
    _poor_score = False

    # As for the private fits, where it says why sample_weight is not in the signature.
    __metadata_request__fit = {"sample_weight": None}

    def __init__(
        self,
        *,
        max_iter="auto",
        batch_size="auto",
        initial_batch_size="auto",
        momentum="auto",
        learning_rate="auto",
        max_step_norm="auto",
        output="last",
        penalty="nonconvex",
        alpha=1e-3,
        sampling="poisson",
        fit_intercept=True,
        classes=None,
        coef_init=None,
        random_state=None,
        verbose=False,
        callback=None,
    ):
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.initial_batch_size = initial_batch_size
        self.momentum = momentum
        self.learning_rate = learning_rate
        self.max_step_norm = max_step_norm
        self.output = output
        self.penalty = penalty
        self.alpha = alpha
        self.sampling = sampling
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.coef_init = coef_init
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any, **weights: Any) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Neither copied (if it is float32 or float64) nor changed.
        y : array-like of shape (n_samples,)
            Targets.
        **weights : dict
            ``sample_weight`` of shape (n_samples,).

        Returns
        -------
        self : estimator
        """
        self._check_targets()
        check_flag("fit_intercept", self.fit_intercept)
        check_common(self)
        self._check_momentum()
        session = PrivacySession.without_privacy(random_state=self.random_state)
        problem = self._problem(X, y, None, weights)
        solution = self._solve(session, problem)
        fitted = model_attributes(self, problem, solution.theta)
        replace_fitted(self, {**fitted, "n_iter_": solution.n_iter, **solution.attributes})
        return self

    def _inferred(self) -> tuple[str, ...]:
        return ()
