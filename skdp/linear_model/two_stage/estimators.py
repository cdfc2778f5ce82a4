"""The estimators of two-stage fitting: parameters here, the algorithm in `solver`."""

from numbers import Integral, Real
from typing import Any

from skdp.base import check_choice, check_number
from skdp.linear_model.adassp import (
    LARGEST,
    check_scales,
    given_bounds,
    given_scales_assumption,
)
from skdp.linear_model.frame import PrivateFit, Solution, count_assumption
from skdp.linear_model.glm import GLMClassifier, GLMRegressor, Problem
from skdp.linear_model.parts.checks import check_features
from skdp.linear_model.parts.task import given
from skdp.linear_model.two_stage.solver import AMP_SHARE, Plan, default_support, two_stage
from skdp.privacy.session import PrivacySession

__all__ = ["DPTwoStageClassifier", "DPTwoStageRegressor"]


class _TwoStageFit(PrivateFit):
    """What the two estimators share: checks, run, report."""

    n_nonzero_coefs: int | None
    selection: str
    n_blocks: int | str
    row_norm: float | str
    alpha: float | str
    y_bounds: Any = "adaptive"
    second_stage = "output"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("n_nonzero_coefs", self.n_nonzero_coefs, Integral, low=1, none=True)
        check_choice("selection", self.selection, ("gumbel", "votes"))
        check_number("n_blocks", self.n_blocks, Integral, low=1, word="auto")
        check_scales(self.row_norm, self.y_bounds)
        # Without a penalty the minimiser has no bounded sensitivity; the second moment needs none.
        squared = getattr(self, "loss", None) == "squared"
        low = 0.0 if squared else 1e-50
        check_number("alpha", self.alpha, Real, low=low, high=1e45, word="auto")

    def _solve(self, session: PrivacySession, problem: Problem) -> Solution:
        records, loss = problem.records, problem.loss
        s = self.n_nonzero_coefs
        check_features(s, records.n_features)
        s = default_support(session, records) if s is None else int(s)
        if loss.is_quadratic and s > LARGEST:
            raise ValueError(
                f"loss='squared' can keep at most {LARGEST} features, asked for {s}: the square of their "
                "number is released. Give n_nonzero_coefs"
            )
        plan = Plan(
            s,
            self.selection,
            given(self.n_blocks),
            given(self.row_norm),
            given_bounds(self.y_bounds),
            given(self.alpha),
            self.second_stage,
        )
        theta, attributes = two_stage(session, records, loss, plan)
        stages = 1 + (s < records.n_features)
        return Solution(theta, n_iter=stages, attributes=attributes)

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        found = given_scales_assumption(self.row_norm, self.y_bounds)
        return found if problem.loss.is_quadratic else found + count_assumption(problem)


class DPTwoStageClassifier(GLMClassifier, _TwoStageFit):
    """Sparse logistic or softmax regression in two stages, differentially private.

    First a support of ``n_nonzero_coefs`` features is chosen by noisy scores, then a penalised convex model is
    fitted on it [1]_ [3]_. The guarantee is (epsilon, delta)-differential privacy for one fit, under the given
    ``adjacency`` and ``unit``; `privacy_` says what it rests on.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
    n_nonzero_coefs : int, default=None
        Number of features to keep. None takes one for about 150/mu records (mu: the budget in Gaussian DP; 560
        records at the default budget), at least 5. The intercept is always kept. Where all features are kept
        there is no first stage.
    selection : {"gumbel", "votes"}, default="gumbel"
        How the first stage scores features. "gumbel": magnitude of the mean gradient at 0, rows clipped in the
        sup norm. "votes" is the published one: blocks of records fit sparse models of their own and vote. It
        needs far more records (user guide).
    n_blocks : int or "auto", default="auto"
        Number of blocks that vote; "auto" is half the square root of the number of records (or groups). Only for
        ``selection="votes"``.
    row_norm : float or "adaptive", default="adaptive"
        Largest l2 norm of a record's features on the chosen support; longer rows are scaled down. "adaptive"
        releases a number near the median norm.
    second_stage : {"output", "amp"}, default="output"
        How the model is fitted on the support. "output": noise on the minimiser of the penalised loss. "amp":
        minima perturbation (`DPAMPClassifier`), for two classes and ``unit="record"`` only; its coefficients are
        more accurate (user guide). It takes 40 % of (epsilon, delta), added to the rest by basic composition.
    alpha : float or "auto", default="auto"
        Weight of the l2 penalty ``alpha / 2 * ||theta||^2``, added to the mean loss of the second stage, > 0.
        "auto" balances bias and noise, from public numbers.
    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.
    classes : sequence of labels, default=None
        The public label set. None infers it from y, warns `PrivacyLeakWarning` and says so in the report.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        What a neighbouring data set is. "add-remove" needs ``n_public``.
    unit : {"record", "group"}, default="record"
        Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`. A group's rows are
        weighted by one over their number, and lie in one block.
    n_public : int, default=None
        Public number that means divide by; None takes the number of records (or groups), which is public
        except under "add-remove".
    accountant : BudgetAccountant or False, default=None
        Charged with (epsilon, delta) by each fit. None takes that of the innermost ``with accountant:``;
        False charges none, also inside such a block.
    random_state : None, int, RandomState or Generator, default=None
        None draws a fresh key from the operating system. Anything else is for tests only: whoever knows
        the seed can subtract the noise.
    verbose : bool, default=False
        Has no effect: two releases show no progress. It is there as in the other private estimators.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of int64
        Indices of the features that are kept, sorted.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted, also those absent from y.
    n_iter_ : int
        Number of stages: 1 where all features are kept, else 2.
    row_norm_ : float
        The bound given, or the one that was released.
    alpha_ : float
        The penalty given, or the one that was chosen.
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    Notes
    -----
    One record moves a score by at most ``2 C / n`` (replace-one; C the released sup-norm clip), and a count of
    votes by at most 1, up for some features and down for others: each of the s choices is an eps0-bounded-range
    choice with Gumbel noise of scale twice that over eps0. The support is released; the second stage restricts
    the records to it before it clips them. The minimiser of the penalised mean loss moves by at most
    ``2 G / (n alpha)`` in l2 norm, plus the solver's certified gap [2]_. Half of the budget (of mu^2) goes to each
    stage.

    References
    ----------
    .. [1] D. Kifer, A. Smith and A. Thakurta, "Private convex empirical risk minimization and high-dimensional
       regression", COLT 2012.
    .. [2] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk minimization",
       JMLR 12 (2011).
    .. [3] D. Durfee and R. Rogers, "Practical differentially private top-k selection with pay-what-you-get
       composition", NeurIPS 2019.

    Examples
    --------
    >>> from skdp import DPTwoStageClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 50, n_informative=3, random_state=0)
    >>> model = DPTwoStageClassifier(epsilon=4.0, n_nonzero_coefs=3, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, len(model.support_)
    ((1, 50), 3)
    >>> bool(model.score(X, y) > 0.6)
    True
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        n_nonzero_coefs=None,
        selection="gumbel",
        n_blocks="auto",
        row_norm="adaptive",
        second_stage="output",
        alpha="auto",
        fit_intercept=True,
        classes=None,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        accountant=None,
        random_state=None,
        verbose=False,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero_coefs = n_nonzero_coefs
        self.selection = selection
        self.n_blocks = n_blocks
        self.row_norm = row_norm
        self.second_stage = second_stage
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _set_aside(self) -> float:  # type: ignore[override]
        return AMP_SHARE if self.second_stage == "amp" else 0.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("second_stage", self.second_stage, ("output", "amp"))
        if self.second_stage == "amp" and self.unit == "group":
            raise ValueError(
                "second_stage='amp' is not proven for unit='group'; use second_stage='output'"
            )

    def _solve(self, session: PrivacySession, problem: Problem) -> Solution:
        if self.second_stage == "amp" and problem.loss.n_outputs > 1:
            raise ValueError(
                f"second_stage='amp' fits two classes, not {problem.loss.n_outputs}; "
                "use second_stage='output'"
            )
        return super()._solve(session, problem)


class DPTwoStageRegressor(GLMRegressor, _TwoStageFit):
    """Sparse linear regression in two stages, differentially private.

    First a support of ``n_nonzero_coefs`` features is chosen by noisy scores, then a linear model is fitted on
    it [1]_ [3]_. The guarantee is (epsilon, delta)-differential privacy for one fit, under the given
    ``adjacency`` and ``unit``; `privacy_` says what it rests on.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
    n_nonzero_coefs : int, default=None
        Number of features to keep. None takes one for about 150/mu records (mu: the budget in Gaussian DP; 560
        records at the default budget), at least 5. The intercept is always kept. Where all features are kept
        there is no first stage.
    loss : {"squared", "huber"}, default="squared"
        The second stage of the squared loss releases the normal equations (`DPAdaSSPRegressor`), that of
        Huber's loss a noisy minimiser.
    huber_threshold : float, default=1.0
        Residual at which Huber's loss becomes linear, in units of y, > 0.
    selection : {"gumbel", "votes"}, default="gumbel"
        How the first stage scores features. "gumbel": magnitude of the mean gradient at 0, rows clipped in the
        sup norm. "votes" is the published one: blocks of records fit sparse models of their own and vote. It
        needs far more records (user guide).
    n_blocks : int or "auto", default="auto"
        Number of blocks that vote; "auto" is half the square root of the number of records (or groups). Only for
        ``selection="votes"``.
    row_norm : float or "adaptive", default="adaptive"
        Largest l2 norm of a record's features on the chosen support; longer rows are scaled down. "adaptive"
        releases a number near the median norm.
    y_bounds : tuple of (float, float) or "adaptive", default="adaptive"
        Public range (low, high) of the targets. "adaptive" releases a median and a quantile of the
        distances from it. All that is adaptive takes 5 % of the budget (of mu^2) together, up to 20 % where the
        records are few.
    alpha : float or "auto", default="auto"
        Weight of the l2 penalty ``alpha / 2 * ||theta||^2``, added to the mean loss of the second stage. "auto":
        AdaSSP's rule for the squared loss, else what balances bias and noise, from public numbers.
    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        What a neighbouring data set is. "add-remove" needs ``n_public``.
    unit : {"record", "group"}, default="record"
        Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`. A group's rows are
        weighted by one over their number, and lie in one block.
    n_public : int, default=None
        Public number that means divide by; None takes the number of records (or groups), which is public
        except under "add-remove".
    accountant : BudgetAccountant or False, default=None
        Charged with (epsilon, delta) by each fit. None takes that of the innermost ``with accountant:``;
        False charges none, also inside such a block.
    random_state : None, int, RandomState or Generator, default=None
        None draws a fresh key from the operating system. Anything else is for tests only: whoever knows
        the seed can subtract the noise.
    verbose : bool, default=False
        Has no effect: two releases show no progress. It is there as in the other private estimators.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    support_ : ndarray of int64
        Indices of the features that are kept, sorted.
    n_iter_ : int
        Number of stages: 1 where all features are kept, else 2.
    row_norm_ : float
        The bound given, or the one that was released.
    y_bounds_ : tuple of (float, float)
        The range given, or the one that was released.
    alpha_ : float
        The penalty given, or the one that was chosen.
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    Notes
    -----
    One record moves a score by at most ``2 C / n`` (replace-one; C the released sup-norm clip), and a count of
    votes by at most 1, up for some features and down for others: each of the s choices is an eps0-bounded-range
    choice with Gumbel noise of scale twice that over eps0. The support is released; the second stage restricts
    the records to it before it clips them. For the squared loss it is `DPAdaSSPRegressor`; the minimiser of
    the penalised Huber loss moves by at most ``2 G / (n alpha)`` in l2 norm, plus the solver's certified gap [2]_.
    Half of the budget (of mu^2) goes to each stage.

    References
    ----------
    .. [1] D. Kifer, A. Smith and A. Thakurta, "Private convex empirical risk minimization and high-dimensional
       regression", COLT 2012.
    .. [2] K. Chaudhuri, C. Monteleoni and A. D. Sarwate, "Differentially private empirical risk minimization",
       JMLR 12 (2011).
    .. [3] D. Durfee and R. Rogers, "Practical differentially private top-k selection with pay-what-you-get
       composition", NeurIPS 2019.

    Examples
    --------
    >>> from skdp import DPTwoStageRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 50, n_informative=3, random_state=0)
    >>> model = DPTwoStageRegressor(epsilon=4.0, n_nonzero_coefs=3).fit(X, y)
    >>> model.coef_.shape, len(model.support_)
    ((50,), 3)
    >>> bool(model.score(X, y) > 0.5)
    True
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        n_nonzero_coefs=None,
        loss="squared",
        huber_threshold=1.0,
        selection="gumbel",
        n_blocks="auto",
        row_norm="adaptive",
        y_bounds="adaptive",
        alpha="auto",
        fit_intercept=True,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        accountant=None,
        random_state=None,
        verbose=False,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero_coefs = n_nonzero_coefs
        self.loss = loss
        self.huber_threshold = huber_threshold
        self.selection = selection
        self.n_blocks = n_blocks
        self.row_norm = row_norm
        self.y_bounds = y_bounds
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
