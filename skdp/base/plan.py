"""The plan of a fit: what it does with data of a shape, decided once from public numbers, before any release.

A family of estimators gives one method ``_decide(session, problem)``. It reads parameters and the public shape of
the records, refuses what cannot be done, and returns a `Decision`. `PrivateFit` makes the `FitPlan` and puts
it into the problem that `solve` gets: warnings, solver and report read it. ``estimator.plan(...)`` makes the
same plan without data and without a charge.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn, Protocol, Self

from skdp.base.purposes import MEANINGS, SEARCHES
from skdp.privacy import BatchPlan, GaussianPlan, PrivacySession, PublicShape

__all__ = ["Advice", "Decision", "FitPlan", "NoRecords", "Step", "gaussian_steps", "steps_of"]


class Advice(NamedTuple):
    """A warning that a fit gives its user."""

    text: str
    category: type[Warning]


class Step(NamedTuple):
    """A planned part of the budget: how many releases take it, and for what.

    Attributes
    ----------
    purpose : str
    share : float
        Part of the budget in [0, 1]: of mu^2 for Gaussian noise, of epsilon for pure mechanisms.
    releases : int or None
        The most that are made: a search ends where its answer is sure. None where released numbers decide how many
        there are.
    noise_multiplier : float or None
        Standard deviation of the noise over the sensitivity; None where it is not one number.
    """

    purpose: str
    share: float
    releases: int | None = 1
    noise_multiplier: float | None = None


def gaussian_steps(session: PrivacySession, *parts: tuple[str, float, int | None]) -> tuple[Step, ...]:
    """Return the steps of equal Gaussian releases: purpose, share and number of each.

    A share of 0, and no release, are left out. There is no noise multiplier where released numbers decide how many
    releases there are, without noise, and in a session that has no mu.
    """
    mu = session.mu if 0.0 < session.mu < math.inf else None
    return tuple(
        Step(purpose, share, n, None if n is None or mu is None else math.sqrt(n / share) / mu)
        for purpose, share, n in parts
        if share and n != 0
    )


def steps_of(plans: object) -> tuple[Step, ...]:
    """Return the steps of plans that a session has made, alone or in tuples, lists and dicts of them."""
    if isinstance(plans, (GaussianPlan, BatchPlan)):
        return (Step(plans.purpose, plans.share, plans.releases, plans.noise_multiplier or None),)
    if isinstance(plans, Mapping):
        plans = tuple(plans.values())
    return tuple(step for plan in plans for step in steps_of(plan)) if isinstance(plans, (tuple, list)) else ()


@dataclass(frozen=True)
class Decision:
    """What a family of estimators decides from public numbers.

    Attributes
    ----------
    method : str
        How the model is fitted, in a word or two; empty where an estimator has one method.
    reason : str
        Why this method, where there is a choice.
    sizes : mapping of str to object
        Public numbers of the method: steps, size of a batch, clip norm, parameters of a net. A number that the fit
        releases on the way is the word "released".
    steps : tuple of Step
        How the budget is divided, in the order of the releases.
    signal : float or None
        Largest signal over the noise, if one release took the whole budget: 1 is a signal as large as the noise.
        None where it is not known before the fit.
    details : object
        What the solver of this family reads; it holds public numbers only.
    """

    method: str = ""
    reason: str = ""
    sizes: Mapping[str, object] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    signal: float | None = None
    details: object = None


class Budgeted(Protocol):
    """An estimator, as far as every plan names it."""

    epsilon: float
    delta: float

    @property
    def adjacency(self) -> str: ...


@dataclass(frozen=True)
class FitPlan:
    """What a fit does with data of a shape; it holds public numbers only.

    Attributes
    ----------
    estimator : str
        Name of the class.
    shape : PublicShape
    epsilon, delta : float
    adjacency : str
    decision : Decision
    warnings : tuple of Advice
        What the fit warns of before its first release.
    facts : mapping of str to object
        Public quantities that the report lists.
    assumptions : tuple of str
        What the claim rests on besides the usual.
    parts : tuple of FitPlan
        Plans of the fits inside, of an estimator that fits others; only in plans that are made without data.
    """

    estimator: str
    shape: PublicShape
    epsilon: float
    delta: float
    adjacency: str
    decision: Decision
    warnings: tuple[Advice, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    parts: "tuple[FitPlan, ...]" = ()

    @classmethod
    def of(cls, estimator: Budgeted, shape: PublicShape, decision: Decision) -> Self:
        """Return the plan as far as the method reads it, without warnings and lines for the report."""
        name = type(estimator).__name__
        return cls(name, shape, estimator.epsilon, estimator.delta, estimator.adjacency, decision)

    def to_dict(self) -> dict[str, object]:
        """Return the plan in built-in types, ready for JSON.

        Returns
        -------
        dict
            Keys ``estimator, method, reason, n_units, unit, n_features, epsilon, delta, adjacency, sizes, budget,
            signal, warnings, facts, assumptions, parts``; the last is a list of such dicts.
        """
        made = self.decision
        return {
            "estimator": self.estimator,
            "method": made.method,
            "reason": made.reason,
            "n_units": self.shape.n_units,
            "unit": self.shape.unit,
            "n_features": self.shape.n_features,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "sizes": dict(made.sizes),
            "budget": [step._asdict() for step in made.steps],
            "signal": made.signal,
            "warnings": [advice.text for advice in self.warnings],
            "facts": dict(self.facts),
            "assumptions": list(self.assumptions),
            "parts": [part.to_dict() for part in self.parts],
        }

    def __str__(self) -> str:
        made, d = self.decision, self.shape.n_features
        features = "1 feature" if d == 1 else f"{d} features"
        lines = [
            f"{self.estimator} with {self.shape.counted()} and {features}",
            f"  epsilon={self.epsilon:g}, delta={self.delta:g}, {self.adjacency}",
        ]
        if made.method:
            lines.append(f"  method: {made.method}" + (f" ({made.reason})" if made.reason else ""))
        lines += [f"  {name}: {_shown(value)}" for name, value in made.sizes.items()]
        if made.signal is not None:
            known = f"at most {made.signal:.3g} times the noise"
            lines.append(f"  expected signal: {known}, if one release took the whole budget")
        if made.steps:
            lines.append("  budget, of mu^2 (of epsilon in releases without a mu):")
            lines += [f"    {_line(step)}" for step in made.steps]
            words = dict.fromkeys(step.purpose for step in made.steps)
            lines += [f"  {word}: {MEANINGS[word]}" for word in words if word in MEANINGS]
            if any("noise multiplier" in line for line in lines):
                lines.append("  noise multiplier: standard deviation over the most that one unit can change")
        lines += [f"  warning: {advice.text}" for advice in self.warnings]
        for part in self.parts:
            lines += ["  a fit inside:", *(f"    {line}" for line in str(part).splitlines())]
        return "\n".join(lines)


def _shown(value: object) -> str:
    if value == "released":
        return "follows from a release"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _line(step: Step) -> str:
    most = "at most " if step.purpose in SEARCHES else ""
    count = "" if step.releases is None else f", {most}{step.releases} release{'s' * (step.releases != 1)}"
    z = step.noise_multiplier
    noise = "" if z is None or math.isinf(z) else f", noise multiplier {z:.4g}"
    return f"{100 * step.share:5.1f} %  {step.purpose}{count}{noise}"


class NoRecords:
    """Stands for the records in a plan that is made without data: it knows their shape, and nothing else.

    Parameters
    ----------
    shape : PublicShape
    """

    def __init__(self, shape: PublicShape) -> None:
        self.shape = shape
        self.n_units, self.n_features, self.n_parameters = shape.n_units, shape.n_features, shape.n_parameters

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a plan has no records, so it cannot read their {name!r}")
