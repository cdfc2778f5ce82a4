"""The plan of a fit and its budget: what it does with data of a shape, decided once from public numbers.

A family of estimators gives one method ``_decide(session, problem)``. It reads parameters and the public shape of
the records, refuses what cannot be done, and returns a `Decision`. `PrivateFit` makes the `FitPlan` and puts
it into the problem that `solve` gets: warnings, solver and report read it. ``estimator.plan(...)`` makes the
same plan without data and without a charge. A `BudgetSplit` is the part of the budget that a method divides.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, NoReturn, Protocol, Self

from skdp.privacy import (
    BatchGroup,
    BatchPlan,
    GaussianPlan,
    NumericSparsePlan,
    PrivacySession,
    PublicShape,
    VocabularyPlan,
    meaning_of,
)

SEARCHES = ("recalibration", "scale")  # hold a search that ends where its answer is sure, maybe before its plan


class Advice(NamedTuple):
    """A warning that a fit gives its user."""

    text: str
    category: type[Warning]


class Step(NamedTuple):
    """A planned part of the budget: its number of releases and their purpose.

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
    """The decision of a family of estimators from public numbers.

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
    outlook : str
        A line for the printed plan alone on the accuracy to expect; empty where there is nothing to say.
    details : object
        What the solver of this family reads; it holds public numbers only.
    """

    method: str = ""
    reason: str = ""
    sizes: Mapping[str, object] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    signal: float | None = None
    outlook: str = ""
    details: object = None


class Budgeted(Protocol):
    """An estimator, as far as every plan names it."""

    epsilon: float
    delta: float

    @property
    def adjacency(self) -> str: ...


@dataclass(frozen=True)
class FitPlan:
    """The plan of a fit for data of a shape; it holds public numbers only.

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
        if made.outlook:
            lines.append(f"  expected accuracy: {made.outlook}")
        if made.steps:
            lines.append("  budget, of mu^2 (of epsilon in releases without a mu):")
            lines += [f"    {_line(step)}" for step in made.steps]
            words = dict.fromkeys(step.purpose for step in made.steps)
            told = [(word, meaning_of(word, self.estimator)) for word in words]
            lines += [f"  {word}: {meaning.what}, for {meaning.why}" for word, meaning in told if meaning.what]
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
    """Stands for the records in a plan that is made without data: it knows their shape, and nothing else."""

    def __init__(self, shape: PublicShape) -> None:
        self.shape = shape
        self.n_units, self.n_features, self.n_parameters = shape.n_units, shape.n_features, shape.n_parameters

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a plan has no records, so it cannot read their {name!r}")


@dataclass(eq=False)
class BudgetSplit:
    """A share of a session's mu^2 (with delta = 0: of epsilon), for a method that divides all that it is given.

    Shares that the method plans are shares of this share. It releases through ``session``, which admits every
    plan by itself, so that a wrong share is refused, not overspent. A method can take nothing of the shares that
    were planned before it. Plans and decisions keep shares, which are public numbers, and never a session.

    Attributes
    ----------
    session : PrivacySession
    share : float, default=1.0
        Of ``whole``, in [0, 1].
    whole : float, default=1.0
        Share of the session's mu^2 that the method has. It multiplies last, so that a method's shares are rounded
        alike, whatever closes the fit.
    left : float
        Part of this share that `take` has not given out yet.

    Notes
    -----
    **Why a share may depend on earlier outputs** (`take`). Releases i = 1, 2, ... are mu_i-GDP given all earlier
    outputs, and the method chooses mu_i from these outputs and public numbers. The session admits a plan only if
    the sum of mu_i^2 over all plans stays at most mu^2 of the claim, on every path. Then all outputs together are
    mu-GDP: this is the filter of fully adaptive composition for Gaussian DP (Smith and Thakurta 2022, Theorem 1;
    Koskela, Tobaben and Honkela 2023). The claim is always the whole, also on a path that spends less.
    """

    session: PrivacySession
    share: float = 1.0
    whole: float = 1.0
    left: float = field(default=1.0, init=False)

    def split(self, **shares: float | None) -> "tuple[BudgetSplit, ...]":
        """Divide by shares of this share: ``scales, steps = budget.split(scales=.1, steps=None)``.

        None, for one of them, is the rest that the other parts leave.

        Raises
        ------
        ValueError
            If a share is not in [0, 1], if two are None, or if nothing is left for the one that is None.
        """
        parts = [None if share is None else self.part(share) for share in shares.values()]
        rest = self.share - math.fsum(part.share for part in parts if part is not None)
        if parts.count(None) > 1 or (None in parts and rest < 0):
            raise ValueError(f"shares need one None at most, and a rest that is not negative, got {shares}")
        return tuple(replace(self, share=rest) if part is None else part for part in parts)

    def part(self, share: float) -> "BudgetSplit":
        """A share of this share; what `take` gave out is not known to it."""
        if not 0 <= share <= 1:
            raise ValueError(f"a share of a budget must be in [0, 1], got {share}")
        return replace(self, share=share * self.share)

    def __add__(self, other: "BudgetSplit") -> "BudgetSplit":
        return replace(self, share=self.share + other.share)

    def equal(self, n: int) -> "BudgetSplit":
        """One of n equal parts."""
        return replace(self, share=self.share / n)

    def method(self, share: float) -> "BudgetSplit":
        """The part of a method: the whole, for it."""
        return BudgetSplit(self.session, whole=self.of_session(share))

    def of_session(self, share: float = 1.0) -> float:
        """A share of this share, as a share of the session's mu^2."""
        return share * self.share * self.whole

    def take(self, share: float, purpose: str, releases: int = 1) -> GaussianPlan:
        """Plan releases that take this share together, or the rest; later steps have the remainder."""
        share = min(share, self.left)  # the last one may be larger by a rounding
        self.left -= share
        return self.plan_gaussian(releases, share, purpose=purpose)

    def step(self, purpose: str, releases: int | None = 1, share: float = 1.0) -> tuple[Step, ...]:
        """Gaussian releases that take a share together, as a plan shows them; nothing for no share."""
        return gaussian_steps(self.session, (purpose, self.of_session(share), releases))

    def plan_gaussian(self, releases: int, share: float = 1.0, *, purpose: str = "steps") -> GaussianPlan:
        """Plan Gaussian releases that take a share together; see `PrivacySession.plan_gaussian`."""
        return self.session.plan_gaussian(releases, self.of_session(share), purpose=purpose)

    def plan_batches(
        self, groups: Sequence[BatchGroup], *, sampling: str = "Poisson", n_units: int, share: float = 1.0
    ) -> tuple[BatchPlan, ...]:
        """Plan releases on minibatches that take a share together; see `PrivacySession.plan_batches`."""
        share = self.of_session(share)
        return self.session.plan_batches(groups, sampling=sampling, n_units=n_units, share=share)

    def plan_numeric_sparse(
        self, runs: int, n_hits: int, share: float = 1.0, *, split: str = "optimal",
        rate: float | None = None, size: int | None = None, parts: int = 1, purpose: str = "steps",
    ) -> NumericSparsePlan:  # fmt: skip
        """Plan runs of the sparse vector technique that take a share together."""
        return self.session.plan_numeric_sparse(
            runs, n_hits, self.of_session(share), split=split, rate=rate, size=size, parts=parts, purpose=purpose
        )

    def plan_vocabulary(self, max_words: int, *, purpose: str = "vocabulary") -> VocabularyPlan:
        """Plan the release of the words that enough units have, which takes all of this share."""
        return self.session.plan_vocabulary(self.of_session(), max_words, purpose=purpose)

    def selection_epsilon(self, choices: int, share: float = 1.0) -> float:
        """Epsilon of each of these choices, which take a share together."""
        return self.session.selection_epsilon(choices, self.of_session(share))

    def require_feasible(self, size: int, releases: int, share: float = 1.0) -> None:
        """Refuse an epsilon whose noise has no exact sampler, before anything is released."""
        self.session.require_feasible(size, releases, self.of_session(share))
