"""The estimators of two-stage fitting: parameters here, the algorithm in `solver`."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Unpack

from skdp._docs import document
from skdp.base.declare import changed, fitted, fixed, parameter
from skdp.base.fit import PrivateFit, SessionOptions
from skdp.base.kinds import choice, integer, real
from skdp.base.plan import BudgetSplit
from skdp.base.problem import Solution
from skdp.fitting import parameters
from skdp.fitting.closing import Closing, LinearDecision, TargetUnits
from skdp.fitting.linear import LinearFit, count_assumption
from skdp.fitting.parameters import Auto, AutoInt
from skdp.fitting.targets import LabelModel, NumberModel, Problem
from skdp.fitting.task import check_features, given
from skdp.linear_model.adassp import MAX_FEATURES, given_scales_assumption
from skdp.linear_model.two_stage.solver import AMP_SHARE, TwoStagePlan, default_support, planned_stages, two_stage
from skdp.privacy import PrivacySession

MAX_PENALTY_WEIGHT = 1e45  # largest weight of the penalty; a choice
# Without a penalty the minimiser has no bounded sensitivity; the second moment needs none.
PENALISED = real(low=1e-50, high=MAX_PENALTY_WEIGHT, word="auto")


class _TwoStageFit(LinearFit):
    """The run and the report of the two estimators."""

    _no_blocks: ClassVar[str | None] = "its votes fit models to blocks of rows that are drawn at random"

    n_nonzero_coefs: int | None = parameter(
        integer(low=1, none=True),
        """Number of features to keep. None takes one for about 150/mu records, at least 5, with the mu of
        (epsilon, delta); that is one for 560 records at the default budget. The intercept is always kept.
        There is no first stage if all features are kept.""",
        default=None,
    )
    selection: Literal["gumbel", "votes"] = parameter(
        choice("gumbel", "votes"),
        """How the first stage scores features. "gumbel" takes the magnitude of the mean gradient at 0, with rows
        clipped in the sup norm. "votes" is the published way: blocks of records fit sparse models of their own
        and vote. It needs far more records (user guide).""",
        default="gumbel",
    )
    n_blocks: AutoInt = parameter(
        integer(low=1, word="auto"),
        """Number of blocks that vote. "auto" is half the square root of the number of records (or groups). It is
        used with ``selection="votes"`` only.""",
        default="auto",
    )
    row_norm: Auto = parameters.more(parameters.ROW_NORM, "Only the features on the chosen support count.")
    alpha: Auto = parameters.L2_PENALTY
    unit = changed(more=f"{parameters.SHARED_WEIGHT} They lie in one block.")
    verbose: bool = parameters.VERBOSE_UNUSED
    n_iter_: int = fitted("int", "Number of stages: 1 if all features are kept, otherwise 2.")
    row_norm_: float = fitted()
    alpha_: float = fitted()
    y_bounds = "auto"  # a parameter of the regressor
    second_stage = "output"  # a parameter of the classifier

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        records, loss = problem.records, problem.loss
        s = self.n_nonzero_coefs
        check_features(s, records.n_features)
        s = default_support(budget.session, records) if s is None else int(s)
        if loss.is_quadratic and s > MAX_FEATURES:
            raise ValueError(
                f"loss='squared' can keep at most {MAX_FEATURES} features, asked for {s}: the square of their "
                "number is released. Give n_nonzero_coefs"
            )
        plan = TwoStagePlan(
            s, self.selection, given(self.n_blocks), given(self.row_norm), given(self.alpha), self.second_stage
        )
        return planned_stages(budget, records, loss, plan)

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        plan: TwoStagePlan = problem.decision.details
        target, d = problem.target, problem.records.n_features
        half_width = None if target is None else target.bound
        theta, attributes = two_stage(problem.budget, problem.records, problem.loss, plan, half_width)
        if target is not None:
            attributes["y_bounds_"] = target.bounds
        return Solution(theta, n_iter=1 + (plan.n_nonzero_coefs < d), attributes=attributes)

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        found = given_scales_assumption(self.row_norm, self.y_bounds)
        return found if problem.loss.is_quadratic else found + count_assumption(problem)


@document()
class DPTwoStageClassifier(_TwoStageFit, LabelModel, PrivateFit[Problem]):
    """Sparse logistic or softmax regression in two stages, differentially private.

    The first stage chooses ``n_nonzero_coefs`` features by noisy scores. The second fits a penalised convex
    model on them. The method is after [Kifer2012]_.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPAMPClassifier : Minima perturbation on all features.
    DPIGHTClassifier : Noisy gradient steps that keep a number of features.

    Notes
    -----
    **Privacy.** Replacing one record moves a score by at most ``2 C / n``, with C the released clip of the sup
    norm, and a count of votes by at most 1. Some scores go up and others down, so each of the s choices is an
    eps0-bounded-range choice with Gumbel noise of twice that over eps0, as in [Durfee2019]_. The support is
    released. The second stage restricts the records to it before it clips them. The minimiser of the penalised
    mean loss, whose gradients are at most G, moves by at most ``2 G / (n alpha)`` in l2 norm, as [Chaudhuri2011]_
    show; the solver's certified gap is added. Under zero-out and add-remove these bounds are half as large, but
    for the votes. Half of the budget (of mu^2) goes to each stage.

    {privacy.unprotected}

    References
    ----------
    .. [Kifer2012]
    .. [Durfee2019]
    .. [Chaudhuri2011]

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

    second_stage: Literal["output", "amp"] = parameter(
        choice("output", "amp"),
        """How the model is fitted on the support. "output" adds noise to the minimiser of the penalised loss.
        "amp" is minima perturbation (`DPAMPClassifier`), for two classes and ``unit="record"`` only. Its
        coefficients are more accurate (user guide). It takes 40 % of (epsilon, delta), added to the rest by basic
        composition.""",
        default="output",
    )
    class_weight: object = fixed(default=None)
    alpha = changed(
        kind=PENALISED,
        more='It penalises the second stage, > 0. "auto" balances bias and noise by public numbers.',
    )

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        options["set_aside"] = self._set_aside()
        return super()._open_session(n_units, **options)

    def _set_aside(self, n_units: int | None = None) -> float:
        return AMP_SHARE if self.second_stage == "amp" else 0.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.second_stage == "amp" and self.unit == "group":
            raise ValueError("second_stage='amp' is not proven for unit='group'; use second_stage='output'")

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        if self.second_stage == "amp" and problem.loss.n_outputs > 1:
            raise ValueError(
                f"second_stage='amp' fits two classes, not {problem.loss.n_outputs}; use second_stage='output'"
            )
        return super()._method(budget, problem)


@document(DPTwoStageClassifier)
class DPTwoStageRegressor(_TwoStageFit, NumberModel, PrivateFit[Problem]):
    """Sparse linear regression in two stages, differentially private.

    The first stage chooses ``n_nonzero_coefs`` features by noisy scores. The second fits a linear model on
    them. The method is after [Kifer2012]_.

    {guarantee}

    See Also
    --------
    DPAdaSSPRegressor : Its second stage with the squared loss, on all features.
    DPIGHTRegressor : Noisy gradient steps that keep a number of features.

    Notes
    -----
    {Notes}

    With the squared loss the second stage is a Gaussian release of the normal equations, as in
    `DPAdaSSPRegressor`.

    {privacy.targets}

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

    loss: Literal["squared", "huber"] = parameter(
        parameters.NAMED_ONLY,
        """With the squared loss the second stage releases the normal equations (`DPAdaSSPRegressor`). With
        Huber's loss it releases a noisy minimiser.""",
        default="squared",
    )
    huber_threshold: float = parameters.HUBER_THRESHOLD
    y_bounds: Any = parameters.Y_BOUNDS
    alpha = changed(
        kind=real(low=0, high=MAX_PENALTY_WEIGHT, word="auto"),
        more="""
        It penalises the second stage. "auto" is AdaSSP's rule for the squared loss. For Huber's loss it balances
        bias and noise by public numbers.""",
    )
    y_bounds_: tuple[float, float] = fitted()

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        return (TargetUnits.of(self, needs_half_width=True),)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.loss != "squared":
            PENALISED.check("alpha", self.alpha)
