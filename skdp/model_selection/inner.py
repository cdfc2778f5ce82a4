"""Estimators that are fitted inside another fit: their private parts, and their budgets."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp._compat import no_warnings, warn_user
from skdp.around.steps import about_steps
from skdp.base.fit import Adjacency, PrivateFit, Unit
from skdp.base.plan import FitPlan
from skdp.base.problem import Problem
from skdp.exceptions import PrivacyLeakWarning
from skdp.privacy import BudgetAccountant, PrivacyReport, PublicShape, asked_charge

CLAIM_ROUNDING = 1.0 + 1e-9  # claims may be rounded up


@dataclass(frozen=True)
class InnerTerms:
    """The terms of an inner fit besides its budget."""

    adjacency: Adjacency
    unit: Unit
    n_public: int | None


@dataclass(frozen=True)
class InnerEstimator:
    """An unfitted private estimator, or a Pipeline that has one; it is never changed.

    Attributes
    ----------
    name : str
        The parameter that it came by, for messages.
    estimator : estimator
    """

    name: str
    estimator: BaseEstimator

    # ---------------------------------------------------------------- checks, before anything is read

    def check(self, terms: InnerTerms) -> None:
        """Raise TypeError or ValueError unless the estimator can be fitted on these terms and evaluated."""
        model, kind = self.estimator, type(self.estimator).__name__
        if isinstance(model, type):
            raise TypeError(f"{self.name} must be an estimator, got the class {model.__name__}")
        last = model
        while isinstance(last, Pipeline) and last.steps:
            last = last.steps[-1][1]
        if not isinstance(last, PrivateFit):
            raise TypeError(
                f"{self.name} must be a private estimator of skdp, or a Pipeline that ends in one, got {kind}: "
                "what it learns from these records would be covered by no epsilon"
            )
        if is_classifier(model):
            if not hasattr(model, "predict_proba") and not hasattr(model, "decision_function"):
                raise TypeError(f"{self.name}, a {kind}, has no scores to evaluate")
        elif not is_regressor(model):
            raise TypeError(f"{self.name} must be a classifier or a regressor, got {kind}")
        for prefix, part in self.parts.items():
            self._check_held(prefix)
            self._check_part(part, terms)

    def _check_held(self, prefix: str) -> None:
        """Refuse a private part of which a copy is fitted under another name: its report would not be found."""
        holder, names = self.estimator, prefix.split("__")[:-1]
        for name in names:
            if not isinstance(holder, Pipeline | FeatureUnion):
                raise TypeError(
                    f"{self.name} has a private estimator inside {type(holder).__name__}, which fits copies of it "
                    "whose cost is not known here: use private estimators as steps of a Pipeline or FeatureUnion, "
                    "or fit that step before, on records of its own"
                )
            holder = holder.get_params()[name]

    def _check_part(self, part: BaseEstimator, terms: InnerTerms) -> None:
        given, kind = part.get_params(deep=False), type(part).__name__
        if isinstance(given.get("accountant"), BudgetAccountant):
            raise ValueError(
                f"{self.name} has an accountant of its own in {kind}: leave it out there, and give accountant= to "
                "what fits it, which pays for all"
            )
        for word, usual in (("adjacency", "replace-one"), ("unit", "record"), ("n_public", None)):
            wanted = getattr(terms, word)
            if word not in given and wanted != usual:
                raise ValueError(f"{kind} in {self.name} has no parameter {word}, so it cannot take {wanted!r}")

    @cached_property
    def parts(self) -> dict[str, PrivateFit[Problem]]:
        """The private estimators by the prefix of their parameters, without estimators inside them."""
        if isinstance(self.estimator, PrivateFit):
            return {"": self.estimator}
        found: dict[str, PrivateFit[Problem]] = {}
        closed: list[str] = []  # prefixes of parts whose inside is not looked at
        params = self.estimator.get_params(deep=True)
        for name in sorted(params, key=lambda name: (name.count("__"), list(params).index(name))):
            value, prefix = params[name], f"{name}__"
            if name.startswith(tuple(closed)):
                continue
            if isinstance(value, PrivateFit):
                found[prefix] = value
            if isinstance(value, PrivateFit) or type(value).__name__ == "FrozenEstimator":
                closed.append(prefix)
        return found

    def lines(self, sparse: bool) -> list[str]:
        """Effects of steps before a private one that are not private; a warning for each is given here."""
        if not isinstance(self.estimator, Pipeline):
            return []
        steps = _steps(self.estimator)
        holds = [i for i, step in enumerate(steps) if any(step is part for part in self.parts.values())]
        before = [step for step in steps[: max(holds, default=0)] if not isinstance(step, PrivateFit)]
        lines = list(about_steps(before, sparse))
        for line in lines:
            warn_user(f"{line}; the report says so", PrivacyLeakWarning)
        return lines

    # ---------------------------------------------------------------- copies

    def paid(
        self,
        budget: tuple[float, float],
        terms: InnerTerms,
        accountant: BudgetAccountant | bool,
        seed: int | None = None,
    ) -> BaseEstimator:
        """An unfitted copy whose private parts each have this (epsilon, delta), and ask this accountant."""
        copy = clone(self.estimator)
        wanted = {
            "epsilon": budget[0], "delta": budget[1], "adjacency": terms.adjacency, "unit": terms.unit,
            "n_public": terms.n_public, "accountant": accountant, "random_state": seed,
        }  # fmt: skip
        for prefix, part in self.parts.items():
            known = part.get_params(deep=False)
            copy.set_params(**{prefix + k: v for k, v in wanted.items() if k in known})
        return copy

    def restored(self, fitted: BaseEstimator) -> BaseEstimator:
        """The fitted copy with the accountant and the seed that the user gave."""
        for prefix, part in self.parts.items():
            given = part.get_params(deep=False)
            names = ("accountant", "random_state")
            fitted.set_params(**{prefix + name: given[name] for name in names if name in given})
        return fitted

    def reports(self, fitted: BaseEstimator) -> list[PrivacyReport]:
        """The reports of the private parts of a fitted copy."""
        if isinstance(fitted, PrivateFit):
            return [fitted.privacy_]
        held = fitted.get_params(deep=True)
        return [held[prefix.removesuffix("__")].privacy_ for prefix in self.parts]

    # ---------------------------------------------------------------- fits

    def fit(self, copy: BaseEstimator, X: object, y: object, groups: object) -> BaseEstimator:
        """Fit a copy; groups go to its private parts."""
        if groups is None:
            return copy.fit(X, y)
        if isinstance(copy, PrivateFit) or get_config()["enable_metadata_routing"]:
            return copy.fit(X, y, groups=groups)
        return copy.fit(X, y, **{f"{prefix}groups": groups for prefix in self.parts})

    def plan(self, budget: tuple[float, float], terms: InnerTerms, shape: PublicShape) -> FitPlan:
        """The plan of a fit to data of this shape; ValueError where the shape is not the one that it gets."""
        if not isinstance(self.estimator, PrivateFit):
            raise ValueError(
                f"a plan is of a shape, and {self.name} is a Pipeline, whose steps decide how many columns the "
                "next one gets: ask each of its private steps for a plan, with "
                f"n_{shape.unit}s={shape.n_units}, epsilon={budget[0]:.4g} and delta={budget[1]:.3g}"
            )
        n = {f"n_{shape.unit}s": shape.n_units}
        return self.paid(budget, terms, False).plan(
            n_features=shape.n_features, n_classes=shape.n_classes, sparse=shape.container == "csr", **n
        )

    def noise_error(self, budget: tuple[float, float], terms: InnerTerms, n_rows: int) -> float:
        """How far drawn noise may be from exact noise, as the private parts ask for it; inf if one has no mu.

        Asking also checks the parameters of each part.

        Parameters
        ----------
        budget : (epsilon, delta)
            Of each part.
        n_rows : int
            Public number of rows.
        """
        X, y = np.broadcast_to(np.zeros(1), (n_rows, 1)), np.zeros(n_rows)
        groups = np.zeros(n_rows) if terms.unit == "group" else None
        found = 0.0
        for part in self.parts.values():
            alone = InnerEstimator(self.name, part)

            def ask(accountant: BudgetAccountant, alone: "InnerEstimator" = alone) -> object:
                return alone.fit(alone.paid(budget, terms, accountant), X, y, groups)

            # Warnings of leaks come before anything is spent, other warnings where they arise.
            with no_warnings(Warning, but=(PrivacyLeakWarning,)):
                charge = asked_charge(ask)
            if charge is None:
                raise TypeError(
                    f"{type(part).__name__} in {self.name} asks no accountant before its fit, so its cost is "
                    "unknown"
                )
            if (
                charge.terms.epsilon > budget[0] * CLAIM_ROUNDING
                or charge.terms.delta > budget[1] * CLAIM_ROUNDING
            ):
                raise ValueError(
                    f"{type(part).__name__} in {self.name} costs more than its epsilon and delta, so it cannot be "
                    "given a part of a budget"
                )
            found += math.inf if charge.terms.approximate else charge.terms.log_error
        return found

    def look(
        self, budget: tuple[float, float], terms: InnerTerms, X: object, y: object, groups: object
    ) -> dict[str, object]:
        """Check all rows as the fits will, so that errors are raised before anything is spent.

        Returns
        -------
        dict
            The public fitted attributes of the first private part.
        """
        copy = self.paid(budget, terms, False)
        steps = [copy] if isinstance(copy, PrivateFit) else [step for _, step in copy.steps]
        for step in steps:
            if isinstance(step, PrivateFit):
                step._check_before_data(groups)
                with np.errstate(all="ignore"):
                    return step.read(X, y, groups).fitted
            if step not in (None, "passthrough"):
                if InnerEstimator("", step).holds_private():
                    return {}
                X = step.fit_transform(X, y)
        return {}

    def holds_private(self) -> bool:
        """Whether a step has a private estimator inside."""
        held = self.estimator.get_params(deep=True).values()
        return any(isinstance(value, PrivateFit) for value in held)


def _steps(pipeline: Pipeline) -> list[BaseEstimator]:
    """The steps of a pipeline in order, with the steps of pipelines inside it."""
    found = []
    for _, step in pipeline.steps:
        found += _steps(step) if isinstance(step, Pipeline) else [step]
    return found
