"""The closing steps of a fit: what takes a part of the budget around the method, before it or after it.

A fit runs the list of its closing steps around its method, the first outermost. Each step plans its part and
leaves the rest to what it encloses, in the decision as in the releases. `TargetUnits` is the step of most
regressions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from skdp.base.budget import BudgetSplit
from skdp.base.plan import Step
from skdp.base.problem import Solution
from skdp.fitting.decision import LinearDecision, Method
from skdp.fitting.recalibrate import LARGEST_SLOPE, plan_recalibration
from skdp.fitting.targets import Problem, expected_weight

__all__ = ["Closing", "Recalibrated", "Solver", "decide", "run"]

Solver = Callable[[BudgetSplit, Problem], Solution]


class Closing(Protocol):
    """A closing step."""

    def decided(self, budget: BudgetSplit, problem: Problem, method: Method) -> LinearDecision:
        """The decision of a method that leaves a part of the budget to this step; nothing is released."""

    def solved(self, budget: BudgetSplit, problem: Problem, solver: Solver) -> Solution:
        """Run the method with the rest of the budget, and what was decided around it."""


@dataclass(frozen=True)
class Recalibrated:
    """The scores of a classifier are recalibrated after the method (`skdp.fitting.recalibrate`).

    Attributes
    ----------
    weights : tuple of float
        What rows are expected to weigh, and the most that one may weigh; public.
    steepest : float
        Largest slope; public.
    """

    weights: tuple[float, float] = (1.0, 1.0)
    steepest: float = LARGEST_SLOPE

    @classmethod
    def of(cls, model: Any, problem: Problem) -> "Recalibrated":
        """The step of an estimator, by its parameters."""
        given, alpha = getattr(model, "max_weight", None), getattr(model, "alpha", None)
        # A penalty that the user asked for makes coefficients small on purpose.
        shrinks = isinstance(alpha, (int, float)) and alpha > 0 and getattr(model, "penalty", "l2") == "l2"
        largest = 1.0 if given is None else float(given)
        return cls((expected_weight(model, problem), largest), 1.0 if shrinks else LARGEST_SLOPE)

    def decided(self, budget: BudgetSplit, problem: Problem, method: Method) -> LinearDecision:
        plan = plan_recalibration(budget.session, problem.records, problem.loss, self.weights, self.steepest)
        if plan is None:
            return method(budget, problem)
        made = method(budget.method(1.0 - plan.share), problem)
        counts = sum(each.releases for each in plan.plans)
        closing = Step("recalibration", budget.of_session(plan.share), counts)
        return replace(made, steps=(*made.steps, closing), recalibration=plan)

    def solved(self, budget: BudgetSplit, problem: Problem, solver: Solver) -> Solution:
        plan = problem.decision.recalibration
        if plan is None:
            return solver(budget, problem)
        found = solver(budget.method(1.0 - plan.share), problem)
        theta, noise = plan.with_noise(budget.session, problem.records, found.theta)
        return replace(found, theta=theta, slope_noise=noise)


def decide(closing: Sequence[Closing], method: Method, budget: BudgetSplit, problem: Problem) -> LinearDecision:
    """The decision of a method with its closing steps."""
    for step in reversed(closing):
        method = partial(step.decided, method=method)
    return method(budget, problem)


def run(closing: Sequence[Closing], solver: Solver, budget: BudgetSplit, problem: Problem) -> Solution:
    """The solution of a method with its closing steps."""
    for step in reversed(closing):
        solver = partial(step.solved, solver=solver)
    return solver(budget, problem)
