"""Other figures of one claim, computed on demand from its state: mu, epsilon at other deltas, and the reverse."""

import math
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    pure_mu,
    rows_delta,
    rows_epsilon,
    rows_mu,
    tradeoff,
)
from skdp.privacy.accounting.minibatch import planned_epsilon
from skdp.privacy.accounting.releases import LedgerRow, Release, release_of, releases_of
from skdp.privacy.mechanisms.gaussian.cost import Gaussian

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Builtin: TypeAlias = "bool | int | float | str | list[Builtin] | dict[str, Builtin] | None"

_ONE_POINT = (
    "a part of the plan is (epsilon, delta)-DP at one point: dp-accounting has no event for it. Add the fit's "
    "epsilon and delta to those of the rest"
)


class ReportState(TypedDict):
    """What a report holds, in built-in types only."""

    epsilon: float
    delta: float
    adjacency: str
    unit: str
    guarantee: str
    accountant: str
    noise: str
    public: dict[str, Builtin]
    assumptions: list[str]
    leaks: list[str]
    mechanisms: list[LedgerRow]
    numerical_error: list[float]
    plan_mu: float | None
    sampled_plan: list[LedgerRow] | None
    erratum: str | None
    estimator: str | None
    post_processing: list[str]
    rechecked: float | None


class Curves:
    """The figures of one claim.

    Privacy
    -------
    All of them are figures of the plan, not of the releases that were made: how many were made may depend on the
    data. If the ideal releases are (e, d)-DP, the drawn ones are (e + s, d exp(s) + t)-DP with (s, t) the
    numerical error of the samplers, so a figure at delta is that of the ideal releases at (delta - t) exp(-s),
    plus s.
    """

    def __init__(self, state: ReportState) -> None:
        self._state = state
        self._rows = state["mechanisms"]
        self._numerical_error = state["numerical_error"]

    @property
    def proven(self) -> bool:
        """Whether there is a guarantee."""
        return self._state["guarantee"] == "proven"

    @property
    def sampled(self) -> bool:
        """Whether a release of the plan is on a sample of the records."""
        plan = self._state["sampled_plan"] or self._rows
        return any(release.on_sample for release in releases_of(plan))

    @property
    def mu(self) -> float:
        """The mu of the whole plan; see `PrivacyReport.mu`."""
        state = self._state
        if not self.proven or self.sampled:
            return math.inf
        rows = rows_mu(self._rows)
        if state["plan_mu"] is not None:
            return max(rows, state["plan_mu"])
        epsilon, delta = state["epsilon"] - self._numerical_error[0], self.ideal_delta(state["delta"])
        if epsilon <= 0.0:
            return rows
        if delta <= 0.0 and rows_epsilon(self._rows, 0.0) >= epsilon * (1.0 - 1e-8):
            return rows  # they cost all of the plan
        # 2e-10 undoes the rounding down of gaussian_mu.
        bound = gaussian_mu(epsilon, delta) * (1.0 + 2e-10) if delta > 0.0 else pure_mu(epsilon)
        return max(rows, bound)

    def ideal_delta(self, delta: float) -> float:
        """What is left of ``delta`` for the ideal releases after the numerical error of the samplers."""
        return (delta - self._numerical_error[1]) * math.exp(-self._numerical_error[0])

    def _planned(self) -> tuple[list[LedgerRow], float]:
        """The sampled rows of the plan, and the mu of its other part. Without a plan it is what was released."""
        plan_mu = self._state["plan_mu"] or 0.0
        if self._state["sampled_plan"] is not None:
            return self._state["sampled_plan"], plan_mu
        sampled = [row for row in self._rows if release_of(row).on_sample]
        others = [row for row in self._rows if not release_of(row).on_sample]
        return sampled, max(rows_mu(others), plan_mu)

    def _rows_are_the_plan(self) -> bool:
        """Whether what is proven of the rows holds for the claim, also if plans were made after releases.

        All of the mu must have been released, and no result may have chosen the kinds of release. Gaussian
        releases of a total mu are one release of that mu, but the curves of other kinds differ at the same mu.
        Sessions without delta plan by epsilon; after a release they claim the mu of one release of all of it.
        """
        gaussian = all(release.is_gaussian_dp for release in releases_of(self._rows))
        if not gaussian and self.ideal_delta(self._state["delta"]) > 0.0:
            return False
        return rows_mu(self._rows) >= self.mu * (1.0 - 1e-8)

    @property
    def _alone(self) -> Release | None:
        """The release, if it is the only one: it may have a curve of its own."""
        releases = releases_of(self._rows)
        return releases[0] if len(releases) == 1 and releases[0].count == 1 else None

    def epsilon_at(self, delta: float) -> float:
        """Smallest epsilon proven at ``delta``; see `PrivacyReport.epsilon_at`."""
        delta, state = float(delta), self._state
        if not 0.0 <= delta < 1.0:
            raise ValueError(f"delta must be in [0, 1), got {delta!r}.")
        if not self.proven:
            return math.inf
        proven = [state["epsilon"]] if delta >= state["delta"] else []
        ideal, numerical_error = self.ideal_delta(delta), self._numerical_error[0]
        if ideal < 0.0:
            return min(proven, default=math.inf)
        if self.sampled:
            plan, mu = self._planned()
            if ideal > 0.0 and mu < math.inf:  # fits that are added by their claims have one point and no mu
                adjacency = state["adjacency"]
                found = planned_epsilon(releases_of(plan), ideal, mu=mu, adjacency=adjacency)
                # The claim leaves some room for the recheck: no figure at its delta is below it.
                has_plan = state["sampled_plan"] and delta <= state["delta"]
                proven.append(max(state["epsilon"] if has_plan else 0.0, found + numerical_error))
        else:
            proven.append(gaussian_epsilon(self.mu, ideal) + numerical_error)
            if self._rows_are_the_plan():
                proven.append(rows_epsilon(self._rows, ideal) + numerical_error)
            alone = self._alone
            if alone is not None:
                # No figure at the delta of the claim, or a smaller one, is below the claim.
                least = state["epsilon"] if delta <= state["delta"] else 0.0
                proven.append(max(least, alone.epsilon_at(ideal) + numerical_error))
        return min(proven, default=math.inf)

    def delta_at(self, epsilon: float) -> float:
        """Smallest delta proven at ``epsilon``; see `PrivacyReport.delta_at`."""
        epsilon, state = float(epsilon), self._state
        if not epsilon >= 0.0:
            raise ValueError(f"epsilon must be >= 0, got {epsilon!r}.")
        if not self.proven:
            return 1.0
        if self.sampled:
            return self._sampled_delta(epsilon)
        proven = [1.0]
        if epsilon >= state["epsilon"]:
            proven.append(state["delta"])
        ideal = epsilon - self._numerical_error[0]
        if ideal >= 0.0:
            found = [gaussian_delta(self.mu, ideal)]
            if self._alone is not None:
                found.append(self._alone.delta_at(ideal))
            if self._rows_are_the_plan():
                found.append(rows_delta(self._rows, ideal))
            grown = (1.0 + 1e-11) * math.exp(self._numerical_error[0])
            proven.extend(part * grown + self._numerical_error[1] for part in found)
        return min(proven)

    def _sampled_delta(self, epsilon: float) -> float:
        """Inverse of `epsilon_at`, rounded up by at most 0.1 %; no less than 1e-100."""
        low, high = math.log(1e-100), 0.0
        while high - low > 1e-3:
            middle = 0.5 * (low + high)
            enough = self.epsilon_at(math.exp(middle)) <= epsilon
            low, high = (low, middle) if enough else (middle, high)
        return math.exp(high)

    def power(self, alpha: float) -> float:
        """Most that an attacker's true positive rate can be at a false positive rate ``alpha``.

        Privacy
        -------
        (epsilon, delta)-DP bounds it by e^epsilon alpha + delta, and by 1 - (1 - delta - alpha) e^-epsilon
        (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015). Of ideal releases that are mu-GDP it is at most
        Phi(Phi^-1(alpha) + mu), the smallest of such bounds over their curve. With the numerical error (s, t) the
        first bound becomes e^s (e^e alpha + d) + t, and the second grows by at most 2 s + t: both by at most
        2 (e^s - 1) + t, since no bound is above 1.
        """
        if not self.proven:
            return 1.0
        epsilon, delta = self._state["epsilon"], self._state["delta"]
        bounds = [1.0, 1.0 - (1.0 - delta - alpha) * math.exp(-epsilon)]
        if epsilon < 700.0:
            bounds.append(math.exp(epsilon) * alpha + delta)
        mu = self.mu
        if mu < math.inf:
            log_error, tail = self._numerical_error
            bounds.append(1.0 - float(tradeoff(mu, alpha)) + 2.0 * math.expm1(log_error) + tail)
        return min(bounds)

    def power_two_values(self, alpha: float) -> float:
        """As `power`, of an attacker who tells apart two values of one unit under zero-out or add-remove.

        Privacy
        -------
        Both data sets are neighbours of the one where the unit is empty or absent. A test of level alpha for one
        of them has at most the level power(alpha) there, so at most the power power(power(alpha)) for the other.
        Of a mu-GDP fit that is 2 mu-GDP, and of an (epsilon, delta)-DP fit no more than
        e^(2 epsilon) alpha + (1 + e^epsilon) delta (docs/guarantee/units.rst).
        """
        return self.power(self.power(alpha))

    def event(self, accountant: str) -> "DpEvent":
        """The plan as an event of dp-accounting; see `PrivacyReport.event_for`."""
        from skdp.privacy.accounting.adapter import event_for

        adjacency = self._state["adjacency"]
        if not self.proven:
            return event_for(None, accountant, adjacency)
        rows = self._rows
        if self.sampled:
            planned, mu = self._planned()
            if mu == math.inf:
                raise UnsupportedAccounting(_ONE_POINT)
            rows = [*planned, _one_release(mu)] if mu else planned
        elif not self._rows_are_the_plan():
            mu = self.mu
            if mu == math.inf:
                raise UnsupportedAccounting(_ONE_POINT)
            rows = [_one_release(mu)]
        return event_for(rows, accountant, adjacency)


def _one_release(mu: float) -> LedgerRow:
    """One Gaussian release of a mu, its noise multiplier rounded down."""
    return Gaussian(noise_multiplier=(1.0 - 2.0**-51) / mu).describe()
