"""The fit of a linear model: coefficients, and warnings about their number."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from skdp._compat import warn_user
from skdp.base.exact import ExactFit
from skdp.base.fit import PrivateFit, Solution
from skdp.base.plan import Advice, Decision, Step
from skdp.exceptions import PrivacyLeakWarning
from skdp.fitting.budget import BudgetSplit
from skdp.fitting.coordinates import parameter_shape
from skdp.fitting.decision import LinearDecision, Method, linear_decision
from skdp.fitting.glm import Problem, expected_weight
from skdp.fitting.linear_model import LinearModel
from skdp.fitting.recalibrate import LARGEST_SLOPE, plan_recalibration
from skdp.fitting.targets import is_classifier
from skdp.fitting.utility import Facts, Release, Released, noise_size, released_warnings, utility_warnings
from skdp.privacy import MOST_PER_PUBLIC, PrivacySession, PublicShape, accounting

__all__ = ["ExactLinearFit", "LinearFit", "LinearModel", "Solution", "count_assumption", "parameter_shape"]

# Parameters for which a word means that a number is released.
ADAPTIVE = ("clip_norm", "learning_rate", "radius", "row_norm", "y_bounds", "huber_threshold")
NORMS = ("clip_norm", "row_norm")


def count_assumption(problem: Problem) -> tuple[str, ...]:
    """What the bound of a minimiser's rounding errors assumes if ``n_public`` is given."""
    if problem.records.shape.n_public is None:
        return ()
    kind = problem.records.shape.unit
    return (f"there are at most {MOST_PER_PUBLIC} times n_public {kind}s",)


class LinearFit(LinearModel, PrivateFit[Problem]):
    """The fit of a private linear model."""

    _free_if_none = frozenset({"coef_init", "class_weight"})

    # A model whose signature does not name weights, for lack of a declared bound, still says how to route them.
    __metadata_request__fit = {"sample_weight": None}

    def _check_parameters(self) -> None:
        self._check_targets()
        super()._check_parameters()

    def _public(self, problem: Problem) -> dict[str, Any]:
        """Further public quantities for the report."""
        return {}

    def _public_facts(self, problem: Problem) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        if getattr(self, "max_weight", None) is not None:
            facts["max_weight"] = float(self.max_weight)
        facts.update(self._public(problem))
        if getattr(self, "classes", None) is not None:
            labels = np.asarray(problem.fitted["classes_"]).tolist()
            facts["classes"] = [x if isinstance(x, (str, int, float)) else str(x) for x in labels]
        return facts

    def _starts_from(self) -> tuple[str, ...]:
        if getattr(self, "coef_init", None) is None:
            return ()
        return ("coef_init is a released model; its own cost is not counted here",)

    def _inferred(self) -> tuple[str, ...]:
        warn_user(
            "the label set was inferred from y, which no epsilon covers; "
            "declare it with classes= in the constructor",
            PrivacyLeakWarning,
        )
        return ("the label set was inferred from y and is not covered by epsilon",)

    def _recalibrates(self, problem: Problem) -> bool:
        """Whether a classifier's scores are recalibrated, where the budget allows it; public."""
        return is_classifier(self) and type(self).solve is LinearModel.solve

    def _decide(self, session: PrivacySession, problem: Problem) -> Decision:
        budget = BudgetSplit(session)
        if self._recalibrates(problem):
            made = self._recalibrated(budget, problem, self._closed)
        else:
            made = self._closed(budget, problem)
        aside = 0.0 if session.exact else self._set_aside(problem.records.shape.n_units)
        if aside:
            left = tuple(step._replace(share=(1.0 - aside) * step.share) for step in made.steps)
            made = replace(made, steps=(*left, Step("minimiser", aside)))
        if made.signal is not None:
            return made
        return replace(made, signal=self._signal(session, problem, made.release))

    def _signal(self, session: PrivacySession, problem: Problem, release: Release) -> float | None:
        """Largest signal over the noise, if one release took the whole budget; None where it is not known."""
        shape = problem.records.shape
        mass = math.inf if session.exact else self._mass(shape)
        if not release or math.isinf(mass):
            return None
        n_coefs = math.prod(parameter_shape(problem.records, problem.loss))
        return mass / noise_size(release, shape, self.adjacency, n_coefs)

    def _recalibrated(self, budget: BudgetSplit, problem: Problem, method: Method) -> LinearDecision:
        """The decision of a method that leaves a part of the budget to the recalibration of its scores."""
        given, alpha = getattr(self, "max_weight", None), getattr(self, "alpha", None)
        # A penalty that the user asked for makes coefficients small on purpose.
        shrinks = isinstance(alpha, (int, float)) and alpha > 0 and getattr(self, "penalty", "l2") == "l2"
        plan = plan_recalibration(
            budget.session,
            problem.records,
            problem.loss,
            weights=(expected_weight(self, problem), 1.0 if given is None else float(given)),
            steepest=1.0 if shrinks else LARGEST_SLOPE,
        )
        if plan is None:
            return method(budget, problem)
        made = method(budget.method(1.0 - plan.share), problem)
        counts = sum(each.releases for each in plan.plans)
        closing = Step("recalibration", budget.of_session(plan.share), counts)
        return replace(made, steps=(*made.steps, closing), recalibration=plan)

    def _advice(self, session: PrivacySession, problem: Problem) -> tuple[Advice, ...]:
        return utility_warnings(self._utility(session, problem))

    def _utility(self, session: PrivacySession, problem: Problem) -> Facts:
        """The public numbers that tell whether the fit may be of little use."""
        made, shape = linear_decision(problem), problem.records.shape
        given = self.get_params(deep=False)  # a class may fix one of these words by itself
        classes = is_classifier(self)
        return Facts(
            name=type(self).__name__,
            shape=shape,
            epsilon=self.epsilon,
            mass=math.inf if session.exact else self._mass(shape),
            method=made.thresholds,
            task="classes" if classes else "numbers",
            searched=tuple(name for name in ADAPTIVE if isinstance(given.get(name), str)),
            constant=made.constant,
            calibrated=made.calibrated,
            release=made.release,
            weight=expected_weight(self, problem) if classes else 1.0,
            n_coefs=math.prod(parameter_shape(problem.records, problem.loss)),
            adjacency=self.adjacency,
            selects=hasattr(self, "n_nonzero_coefs"),
        )

    def _mass(self, shape: PublicShape) -> float:
        """Units times mu; inf without noise, and without a mu."""
        if self.delta == 0 or math.isinf(self.epsilon):
            return math.inf
        return shape.n_units * accounting.gaussian_mu(self.epsilon, self.delta)

    def _advice_after(self, shape: PublicShape, solution: Solution) -> tuple[Advice, ...]:
        found = cast("Mapping[str, float]", solution.attributes)
        searched = [x for x in NORMS if isinstance(getattr(self, x, None), str) and f"{x}_" in found]
        facts = Released(
            task="classes" if is_classifier(self) else "numbers",
            n_features=shape.n_features,
            mass=self._mass(shape),
            norms=tuple((name, found[f"{name}_"]) for name in searched),
            reach=found.get("target_reach_", 1.0),
            shrinkage=found.get("shrinkage_", 1.0),
            slope_noise=solution.slope_noise,
        )
        return released_warnings(facts)


class ExactLinearFit(LinearModel, ExactFit[Problem]):
    """The fit of a linear model without privacy."""

    n_public = None
    max_weight = math.inf

    def _check_parameters(self) -> None:
        self._check_targets()

    def _decide(self, session: PrivacySession, problem: Problem) -> Decision:
        return self._closed(BudgetSplit(session), problem)

    def _inferred(self) -> tuple[str, ...]:
        """Return no leak: an exact fit promises nothing."""
        return ()
