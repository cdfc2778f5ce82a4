"""The frame of a private fit: check, reserve, read, run, recheck, store."""

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from skdp._compat import around_this_fit, warn_user
from skdp.base import (
    PrivateEstimator,
    check_flag,
    check_number,
    replace_fitted,
)
from skdp.exceptions import PrivacyLeakWarning, UtilityWarning
from skdp.linear_model.glm import Problem, from_theta
from skdp.linear_model.parts.scales import GRID
from skdp.privacy import accounting
from skdp.privacy.adjacency import factor
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session import PrivacySession
from skdp.privacy.shape import MOST_PER_PUBLIC

__all__ = ["LinearFit", "Solution", "count_assumption", "parameter_shape"]

# Parameters of which a word means that a number is released for them.
ADAPTIVE = ("clip_norm", "learning_rate", "radius", "row_norm", "y_bounds", "huber_threshold")
# Units times mu. Below, noisy counts of all units tell little: 20 % of the budget do not pay for two searches
# that hardly ever end far from the median.
FEW = 70.0
SMALLEST = 8.0 * float(GRID[0])  # what follows from the first point of a grid is at most this
# Hardly anybody's median: where half of the rows are empty a search ends anywhere below.
TINY = 1e-4


@dataclass(frozen=True)
class Solution:
    """What a run released.

    Attributes
    ----------
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_outputs)
        The intercept is the last row.
    n_iter : int
    attributes : dict
        Further fitted attributes, public or released, with their trailing underscore.
    converged : bool
        Of a fit that is not private: whether its stopping rule was met.
    """

    theta: np.ndarray
    n_iter: int = 1
    attributes: dict[str, Any] = field(default_factory=dict)
    converged: bool = False


def parameter_shape(records: PrivateRecords, loss: Any) -> tuple[int, ...]:
    """Shape of theta: (p,), or (p, n_classes) for softmax."""
    p = records.n_parameters
    return (p,) if loss.n_outputs == 1 else (p, loss.n_outputs)


def model_attributes(model: Any, problem: Problem, theta: np.ndarray) -> dict[str, Any]:
    """The fitted attributes that every linear model has."""
    coef, intercept = from_theta(theta, model.fit_intercept, hasattr(model, "classes"))
    return {
        **problem.fitted,
        "coef_": coef,
        "intercept_": intercept,
        "support_": np.flatnonzero(np.any(np.atleast_2d(coef) != 0, axis=0)),
    }


def count_assumption(problem: Problem) -> tuple[str, ...]:
    """What a minimiser's rounding errors assume where only ``n_public`` is known of the number of units."""
    if problem.records.shape.n_public is None:
        return ()
    kind = problem.records.shape.unit
    return (f"there are at most {MOST_PER_PUBLIC} times n_public {kind}s",)


def refuse_groups(more: dict[str, Any]) -> None:
    """Raise TypeError where a fit that is not private is given ``groups``."""
    if "groups" in more:
        raise TypeError(
            "fit got an unexpected keyword argument 'groups': a model that is not private has no unit"
        )


def _count_rows(X: Any) -> int:
    """Number of rows, as far as it can be told before validation; at least 1."""
    if getattr(X, "shape", None):
        return max(1, int(X.shape[0]))
    return max(1, len(X)) if hasattr(X, "__len__") else 1


class LinearFit(PrivateEstimator):
    """The fit of a private linear model; a subclass gives `_check_parameters` and `solve`."""

    fit_intercept: bool
    _pure_possible = False  # whether delta=0 can be paid, by pure mechanisms alone
    _erratum: str | None = None  # of the published constant, for the report
    _unproven = (
        False  # whether noise is added that no valid proof supports; the session then is exact
    )
    # scikit-learn's score thresholds on a few hundred rows cannot be asked of epsilon = 1.
    _poor_score = True

    # sample_weight is taken by fit only when max_weight is declared, so it is not in the signature:
    # scikit-learn would otherwise ask that weight 0 equals leaving a row out, and n is public here.
    __metadata_request__fit = {"sample_weight": None}

    def fit(self, X: Any, y: Any, *, groups: Any = None, **weights: Any) -> Any:
        """Fit the model privately.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Neither copied (if it is float32 or float64) nor changed.
        y : array-like of shape (n_samples,)
            Targets.
        groups : array-like of shape (n_samples,), default=None
            Who each row belongs to; needed by, and allowed with, ``unit="group"`` only.
        **weights : dict
            ``sample_weight`` of shape (n_samples,), if ``max_weight`` is declared.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If a parameter or the data are not as described. No budget is spent.
        PrivacyBudgetExceeded
            If the accountant does not hold (epsilon, delta). Nothing was read.
        PrivacyAccountingError
            If the ledger costs more than the claim: a bug in skdp. The result is discarded.
        """
        self._check_privacy_parameters()
        self._check_parameters()
        self._check_unit_and_groups(groups)
        with self._open_session(self._units_before(X)) as session:
            problem = self.read(X, y, groups, **weights)  # type: ignore[attr-defined]
            self._warn_delta(problem.records)
            self._warn_few(session, problem.records)
            self._warn_many(session, problem)
            solution = self.solve(session, problem)
            self._warn_smallest(solution)
            report = self._report(session, problem)
        replace_fitted(self, {**self._fitted(problem, solution), "privacy_": report})
        return self

    def _units_before(self, X: Any) -> int | None:
        """Public number of units before anything is read: None for groups, whose rows are private."""
        public: int | None = getattr(self, "n_public", None)
        if public is not None or self.unit == "group":
            return public
        return _count_rows(X)

    def _check_parameters(self) -> None:
        self._check_targets()  # type: ignore[attr-defined]
        check_flag("fit_intercept", self.fit_intercept)
        max_weight = getattr(self, "max_weight", None)
        if max_weight is not None:
            check_number("max_weight", max_weight, Real, low=0, strict=True, high=1e100)
        if self.delta == 0 and not self._pure_possible:
            raise ValueError(
                "delta=0 needs pure mechanisms, but this method adds Gaussian noise; give delta > 0, "
                "for example 1e-6"
            )

    def solve(self, session: PrivacySession, problem: Problem) -> Any:
        raise NotImplementedError

    def _fitted(self, problem: Problem, solution: Solution) -> dict[str, Any]:
        return {
            **model_attributes(self, problem, solution.theta),
            "n_iter_": solution.n_iter,
            **solution.attributes,
        }

    def _public(self, problem: Problem) -> dict[str, Any]:
        """Further public quantities for the report."""
        return {}

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        """What the claim rests on besides the usual."""
        return ()

    def _inferred(self) -> tuple[str, ...]:
        warn_user(
            "the label set was inferred from y, which no epsilon covers; "
            "declare it with classes= in the constructor",
            PrivacyLeakWarning,
        )
        return ("the label set was inferred from y and is not covered by epsilon",)

    def _warn_delta(self, records: PrivateRecords) -> None:
        shape = records.shape
        if self.delta >= 1.0 / shape.n_units:
            warn_user(
                f"delta={self.delta:g} is not below 1/n = 1/{shape.n_units}: a mechanism that "
                f"publishes one whole {shape.unit} would pass; use a smaller delta",
                UserWarning,
            )

    def _warn_few(self, session: PrivacySession, records: PrivateRecords) -> None:
        given = self.get_params(deep=False)  # a class may fix one of these words by itself
        names = [name for name in ADAPTIVE if isinstance(given.get(name), str)]
        if not names or session.exact or self.delta == 0:
            return
        shape = records.shape
        if shape.n_units * accounting.gaussian_mu(self.epsilon, self.delta) < FEW:
            verb = "is" if shape.n_units == 1 else "are"
            wanted = " and ".join(f"{name}=" for name in names)
            numbers = "public numbers" if len(names) > 1 else "a public number"
            warn_user(
                f"{shape.counted()} at epsilon={self.epsilon:g} {verb} few: the released scales are "
                f"mostly noise; give {wanted} as {numbers}, "
                f"more {shape.unit}s or a larger epsilon",
                UtilityWarning,
            )

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

    def _warn_many(self, session: PrivacySession, problem: Problem) -> None:
        if session.exact or self.delta == 0:
            return
        shape, (size, hidden) = problem.records.shape, self._noise(problem)
        if size > shape.n_units * accounting.gaussian_mu(self.epsilon, self.delta):
            fewer = "n_nonzero_coefs=, " if hasattr(self, "n_nonzero_coefs") else ""
            warn_user(
                f"{math.prod(parameter_shape(problem.records, problem.loss))} coefficients are too many for "
                f"{shape.counted()} at epsilon={self.epsilon:g}: even if the whole budget went to one release, "
                f"its noise would be {hidden}; use fewer features, {fewer}more {shape.unit}s or a larger "
                "epsilon",
                UtilityWarning,
            )

    def _warn_smallest(self, solution: Solution) -> None:
        for name in ("clip_norm", "row_norm"):
            released = solution.attributes.get(f"{name}_", 1.0)
            if isinstance(getattr(self, name, None), str) and released < TINY:
                what = "the smallest that can be released" if released <= SMALLEST else "tiny"
                zeros = "" if is_classifier(self) else ", or more than half of the targets 0"
                warn_user(
                    f"the released {name} is {what} ({released:.1g}): unless the data are on such a scale, "
                    f"more than half of the rows may be empty{zeros}, and the "
                    f"coefficients are of no use; give {name}= as a public number",
                    UtilityWarning,
                )

    def _report(self, session: PrivacySession, problem: Problem) -> Any:
        records = problem.records
        shape = records.shape
        public: dict[str, Any] = {"n_features": shape.n_features}
        counts = {
            "n_records": shape.n_records,
            "n_groups": shape.n_groups,
            "n_public": shape.n_public,
        }
        public.update({name: count for name, count in counts.items() if count is not None})
        if getattr(self, "max_weight", None) is not None:
            public["max_weight"] = float(self.max_weight)
        public.update(self._public(problem))
        if getattr(self, "classes", None) is not None:
            public["classes"] = [str(label) for label in problem.fitted["classes_"]]
        around = around_this_fit()
        seen = any("learnt from these records" in line for _, line in around)
        assumptions = [
            "every record passes the per-record checks: finite, numeric, label among the classes",
            *([] if seen else ["earlier pipeline steps did not learn from these records"]),
            "time and memory of the fit are not protected",
            *(["at least one record or group remains"] if self.adjacency == "add-remove" else []),
            *problem.leaks,
            *self._assumptions(problem),
        ]
        for message, line in around:
            warn_user(message, PrivacyLeakWarning)
            assumptions.append(line)
        if getattr(self, "coef_init", None) is not None:
            assumptions.append("coef_init is a released model; its own cost is not counted here")
        erratum = None if session.exact and not self._unproven else self._erratum
        return session.report(
            public=public,
            assumptions=tuple(assumptions),
            unproven=self._unproven,
            erratum=erratum,
        )
