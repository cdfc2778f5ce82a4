"""The fit of a linear model: coefficients, and warnings about their number."""

import math
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from sklearn.base import is_classifier

from skdp._compat import warn_user
from skdp.base.declare import Declared, parameter
from skdp.base.fit import ExactFit, PrivateFit, Solution
from skdp.base.kinds import flag
from skdp.base.weights import names_weights
from skdp.exceptions import PrivacyLeakWarning, UtilityWarning
from skdp.fitting.checks import SURE_MASS, warn_probabilities
from skdp.fitting.coordinates import from_theta, parameter_shape
from skdp.fitting.glm import Problem, expected_weight
from skdp.fitting.portion import Portion
from skdp.fitting.recalibrate import (
    LARGEST_SLOPE,
    Recalibration,
    plan_recalibration,
)
from skdp.fitting.scales import GRID
from skdp.privacy import MOST_PER_PUBLIC, PrivacySession, accounting, factor

__all__ = [
    "ExactLinearFit",
    "LinearFit",
    "LinearModel",
    "Solution",
    "count_assumption",
    "parameter_shape",
]

# Parameters for which a word means that a number is released.
ADAPTIVE = ("clip_norm", "learning_rate", "radius", "row_norm", "y_bounds", "huber_threshold")
# Least units times mu. Below it, 20 % of the budget are too little for two searches to end near the median.
FEW = 70.0
SMALLEST = 8.0 * float(GRID[0])  # largest scale that follows from the first point of a grid
TINY = 1e-4  # a released norm below this means that most rows are empty


def count_assumption(problem: Problem) -> tuple[str, ...]:
    """What the bound of a minimiser's rounding errors assumes if ``n_public`` is given."""
    if problem.records.shape.n_public is None:
        return ()
    kind = problem.records.shape.unit
    return (f"there are at most {MOST_PER_PUBLIC} times n_public {kind}s",)


class LinearModel(Declared):
    """What private and exact fits of linear models share."""

    fit_intercept: bool = parameter(
        flag(),
        "Whether to fit an intercept, as the coefficient of a constant feature.",
        default=True,
    )

    def _check_targets(self) -> None:
        """Check the parameters that say what targets are: classes, losses."""

    def _fitted(self, problem: Problem, solution: Solution) -> dict[str, Any]:
        coef, intercept = from_theta(solution.theta, self.fit_intercept, hasattr(self, "classes"))
        return {
            **problem.fitted,
            "coef_": coef,
            "intercept_": intercept,
            "support_": np.flatnonzero(np.any(np.atleast_2d(coef) != 0, axis=0)),
            "n_iter_": solution.n_iter,
            **solution.attributes,
        }


class LinearFit(LinearModel, PrivateFit[Problem]):
    """The fit of a private linear model; a subclass gives `_check_parameters` and `solve`."""

    _free_if_none = frozenset({"coef_init", "class_weight"})
    # scikit-learn's checks demand scores on a few hundred rows that epsilon = 1 cannot reach.
    _poor_score = True
    _sure_mass = SURE_MASS  # units times mu above which probabilities need no warning

    # A model whose signature does not name weights, for lack of a declared bound, still says how to route them.
    __metadata_request__fit = {"sample_weight": None}

    @names_weights
    def fit(
        self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None, **more: Any
    ) -> Self:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The records lie along the first axis. Neither copied (if it is float32 or float64) nor changed.
        y : array-like of shape (n_samples,)
            Targets.
        groups : array-like of shape (n_samples,), default=None
            Who each record belongs to; needed by, and allowed with, ``unit="group"`` only.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, which are private and are clipped to [0, ``max_weight``]. They need this public bound in the
            constructor. The signature of an instance names them where it is declared.
        **more : dict
            Further arguments that `read` takes; none for most estimators.

        Returns
        -------
        self : estimator

        Raises
        ------
        TypeError
            If an argument is unknown, or if the method has no weighted form and ``sample_weight`` is not None.
            No budget is spent.
        ValueError
            If a parameter or the data are not as described, or if ``sample_weight`` is given and ``max_weight``
            is None. No budget is spent.
        PrivacyBudgetExceeded
            If the accountant does not hold (epsilon, delta). Nothing was read.
        PrivacyAccountingError
            If the ledger costs more than the claim, which is a bug in skdp. The result is discarded.
        """
        return super().fit(X, y, groups=groups, sample_weight=sample_weight, **more)

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
        return is_classifier(self)

    def _run(self, session: PrivacySession, problem: Problem) -> Solution:
        """`solve`; the scores of a classifier are then recalibrated by a part of the budget."""
        plan = self._plan_recalibration(session, problem) if self._recalibrates(problem) else None
        if plan is None:
            return super()._run(session, problem)
        solution = super()._run(Portion.of(session, 1.0 - plan.share), problem)
        return replace(solution, theta=plan.of(solution.theta))

    def _plan_recalibration(
        self, session: PrivacySession, problem: Problem
    ) -> Recalibration | None:
        given, alpha = getattr(self, "max_weight", None), getattr(self, "alpha", None)
        # A penalty that the user asked for makes coefficients small on purpose.
        shrinks = (
            isinstance(alpha, (int, float)) and alpha > 0 and getattr(self, "penalty", "l2") == "l2"
        )
        return plan_recalibration(
            session,
            problem.records,
            problem.loss,
            weights=(expected_weight(self, problem), 1.0 if given is None else float(given)),
            steepest=1.0 if shrinks else LARGEST_SLOPE,
        )

    def _warn_before(self, session: PrivacySession, problem: Problem) -> None:
        super()._warn_before(session, problem)
        if not session.exact and self.delta > 0:
            mass = problem.records.shape.n_units * accounting.gaussian_mu(self.epsilon, self.delta)
            few = self._warn_few(mass, problem)
            self._warn_many(mass, problem)
            if not few and is_classifier(self):
                self._warn_probabilities(mass * expected_weight(self, problem), problem)
            elif not few:
                self._warn_mean(session, mass, problem)

    def _warn_few(self, mass: float, problem: Problem) -> bool:
        """Warn if ``mass``, the number of units times mu, is too small for released scales; say whether."""
        given = self.get_params(deep=False)  # a class may fix one of these words by itself
        names = [name for name in ADAPTIVE if isinstance(given.get(name), str)]
        if not names or mass >= FEW:
            return False
        shape = problem.records.shape
        verb = "is" if shape.n_units == 1 else "are"
        wanted = " and ".join(f"{name}=" for name in names)
        numbers = "public numbers" if len(names) > 1 else "a public number"
        warn_user(
            f"{shape.counted()} at epsilon={self.epsilon:g} {verb} few: the released scales are "
            f"mostly noise; give {wanted} as {numbers}, "
            f"more {shape.unit}s or a larger epsilon",
            UtilityWarning,
        )
        return True

    def _warn_many(self, mass: float, problem: Problem) -> None:
        """Warn if one release of the whole budget could not hold so many coefficients."""
        shape, (size, hidden) = problem.records.shape, self._noise(problem)
        if size > mass:
            fewer = "n_nonzero_coefs=, " if hasattr(self, "n_nonzero_coefs") else ""
            warn_user(
                f"{math.prod(parameter_shape(problem.records, problem.loss))} coefficients are too many for "
                f"{shape.counted()} at epsilon={self.epsilon:g}: even if the whole budget went to one release, "
                f"its noise would be {hidden}; use fewer features, {fewer}more {shape.unit}s or a larger "
                "epsilon",
                UtilityWarning,
            )

    def _warn_probabilities(self, mass: float, problem: Problem) -> None:
        """Warn if probabilities may be worse than the frequencies of the classes."""
        warn_probabilities(self, problem.records.shape, mass, self._sure_mass)

    def _warn_mean(self, session: PrivacySession, mass: float, problem: Problem) -> None:
        """Warn if a regression may be worse than the mean of y."""

    def _noise(self, problem: Problem) -> tuple[float, str]:
        """Size of the noise if the whole budget went to one release, in units of 1 / (n mu), and what it hides.

        It is 0 where no release holds all parameters at once.
        """
        return 0.0, ""

    def _gradient_noise(self, problem: Problem) -> tuple[float, str]:
        """`_noise` of methods that release the mean gradient of all parameters.

        No mean gradient is longer than the clip norm C, and one release has noise of norm
        ``factor * C * sqrt(entries) / (n mu)``.
        """
        entries = math.prod(parameter_shape(problem.records, problem.loss))
        return factor(self.adjacency) * math.sqrt(entries), "longer than any mean gradient can be"

    def _warn_after(self, solution: Solution) -> None:
        for name in ("clip_norm", "row_norm"):
            released = cast("float", solution.attributes.get(f"{name}_", 1.0))  # a norm
            if isinstance(getattr(self, name, None), str) and released < TINY:
                what = "the smallest that can be released" if released <= SMALLEST else "tiny"
                zeros = "" if is_classifier(self) else ", or more than half of the targets 0"
                warn_user(
                    f"the released {name} is {what} ({released:.1g}): unless the data are on such a scale, "
                    f"more than half of the rows may be empty{zeros}, and the "
                    f"coefficients are of no use; give {name}= as a public number",
                    UtilityWarning,
                )


class ExactLinearFit(LinearModel, ExactFit[Problem]):
    """The fit of a linear model without privacy; a subclass gives `_check_parameters` and `solve`."""

    n_public = None
    max_weight = math.inf
    _poor_score = False

    def _check_parameters(self) -> None:
        self._check_targets()

    def _inferred(self) -> tuple[str, ...]:
        """Return no leak: an exact fit promises nothing."""
        return ()
