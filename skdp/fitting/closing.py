"""The closing steps of a fit: what takes a part of the budget around the method, before it or after it.

A fit runs the list of its closing steps around its method, the first outermost. Each step plans its part and
leaves the rest to what it encloses, in the decision as in the releases. `TargetUnits` is the step of most
regressions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from skdp.base.budget import BudgetSplit
from skdp.base.plan import Step
from skdp.base.problem import Solution
from skdp.fitting.decision import LinearDecision, Method
from skdp.fitting.recalibrate import plan_recalibration
from skdp.fitting.targets import Problem, expected_weight

__all__ = ["Closing", "Recalibrated", "closed", "decide", "opened"]


class Closing(Protocol):
    """A closing step."""

    def decided(self, budget: BudgetSplit, problem: Problem, method: Method) -> LinearDecision:
        """The decision of a method that leaves a part of the budget to this step; nothing is released."""

    def opened(self, budget: BudgetSplit, problem: Problem) -> tuple[BudgetSplit, Problem]:
        """Release what comes before the method; the rest of the budget, and the problem as the method sees it."""

    def closed(self, budget: BudgetSplit, problem: Problem, found: Solution) -> Solution:
        """Release what comes after the method, by this step's budget and the problem that `opened` gave."""


Opened = tuple[Closing, BudgetSplit, Problem]


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
    steepest: float | None = None

    @classmethod
    def of(cls, model: Any, problem: Problem) -> "Recalibrated":
        """The step of an estimator, by its parameters."""
        given, alpha = getattr(model, "max_weight", None), getattr(model, "alpha", None)
        # A penalty that the user asked for makes coefficients small on purpose.
        shrinks = isinstance(alpha, (int, float)) and alpha > 0 and getattr(model, "penalty", "l2") == "l2"
        largest = 1.0 if given is None else float(given)
        return cls((expected_weight(model, problem), largest), 1.0 if shrinks else None)

    def decided(self, budget: BudgetSplit, problem: Problem, method: Method) -> LinearDecision:
        plan = plan_recalibration(budget.session, problem.records, problem.loss, self.weights, self.steepest)
        if plan is None:
            return method(budget, problem)
        made = method(budget.method(1.0 - plan.share), problem)
        counts = sum(each.releases for each in plan.plans)
        closing = Step("recalibration", budget.of_session(plan.share), counts)
        return replace(made, steps=(*made.steps, closing), recalibration=plan)

    def opened(self, budget: BudgetSplit, problem: Problem) -> tuple[BudgetSplit, Problem]:
        plan = problem.decision.recalibration
        return (budget if plan is None else budget.method(1.0 - plan.share)), problem

    def closed(self, budget: BudgetSplit, problem: Problem, found: Solution) -> Solution:
        plan = problem.decision.recalibration
        if plan is None:
            return found
        theta, noise = plan.with_noise(budget.session, problem.records, found.theta)
        return replace(found, theta=theta, slope_noise=noise)


def decide(closing: Sequence[Closing], method: Method, budget: BudgetSplit, problem: Problem) -> LinearDecision:
    """The decision of a method with its closing steps."""
    for step in reversed(closing):
        method = partial(step.decided, method=method)
    return method(budget, problem)


def opened(closing: Sequence[Closing], budget: BudgetSplit, problem: Problem) -> tuple[Problem, list[Opened]]:
    """The problem as a method sees it, with its part of the budget, and the steps that `closed` needs then."""
    steps: list[Opened] = []
    for step in closing:
        rest, problem = step.opened(budget, problem)
        steps.append((step, budget, problem))
        budget = rest
    return replace(problem, budget=budget), steps


def closed(steps: Sequence[Opened], found: Solution) -> Solution:
    """The solution of a method after its closing steps, the innermost first."""
    for step, budget, problem in reversed(steps):
        found = step.closed(budget, problem, found)
    return found
