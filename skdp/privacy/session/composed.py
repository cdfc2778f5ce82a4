"""A session that pays once for fits inside it, each with a session of its own.

Every unit of the data lies at one *place*, and each fit reads the units of some places: a fit of a
cross-validation reads all folds but one. A unit pays for the fits that read its place; the dearest place is
claimed.

Privacy
-------
*Claim.* Let fit i be mu_i-GDP with exact noise, whatever was released before. If the place of each unit is chosen
without reading values (by position, from coins), the fits together are mu-GDP with mu^2 the largest sum of mu_i^2
over the fits that read one place.

*Proof.* Couple the choice of places on the two neighbouring data sets such that the unit that differs has the same
place p on both, and all others theirs (below). Condition on it. Take the fits in their order of time. Given what
was released before, a fit that does not read p gets the same rows on both data sets, so it releases with the same
law: it is public randomness of the process that consists of the others. Those are mu_i-GDP, given what was
released before; together they are an adaptive composition of mu_i-GDP mechanisms, which is (sum of
mu_i^2)^(1/2)-GDP (Dong, Roth and Su 2022). A mixture over places, whose law is the same on both, is as private as
the dearest: the trade-off function of the pair (place, releases) is at least the dearest place's, and the place
can be forgotten.

*The coupling.* Under replace-one and zero-out the number n of units is public, and a uniformly random order of
them is cut at public sizes. Match the unit that is replaced with the one in its place (a group may have another
label and another number of rows), all others with themselves: the image of a uniform order is uniform. Under
add-remove every unit draws its place by a coin of its own; who is in both data sets has the same coin in both. The
sizes of places are then private, and fits need public numbers in their stead.

*Without a mu.* If a fit has none (it draws minibatches, or perturbs a minimum), each fit i is (e_i, d_i)-DP, and
the sums over one place are claimed: basic composition (Dwork et al. 2006), by the same conditioning.

*Rounded noise.* Fit i differs from its exact form by a_i and b_i (`skdp.privacy.budget.filters`), which add up at
each place. The session keeps a part of (epsilon, delta) that holds their sums:
`ComposedLedger.epsilon_numerical_error`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import PrivacyAccountingError, PrivacyBudgetExceeded
from skdp.privacy import accounting, noise
from skdp.privacy.accounting.releases import LedgerRow
from skdp.privacy.budget import BudgetAccountant
from skdp.privacy.budget.filters import Charge
from skdp.privacy.budget.inner import InnerAccountant, InnerCharge
from skdp.privacy.report import PrivacyReport
from skdp.privacy.session import claim
from skdp.privacy.session.ledger import GaussianPlan, Ledger
from skdp.privacy.session.session import PrivacySession

_COINS = 2**53  # a coin is uniform on 0 .. 2^53 - 1
_DOWN = 1.0 - 1e-9  # factor of an inner epsilon, so that its mu stays below its share in spite of rounding
_ROUNDING = 1.0 + 1e-12  # sums of shares of (epsilon, delta) may round up


@dataclass(frozen=True)
class InnerFits:
    """The fits inside a session, the largest cost of each, and the fits that read each place.

    Attributes
    ----------
    purposes : tuple of str
        For the report, one for each fit.
    shares : tuple of float
        Of each fit: of mu^2, or of (epsilon, delta) with basic composition. The sum over a place is at most 1.
    positions : tuple of tuple of int
        The numbers of the fits that read each place.
    charges : tuple of int
        How many private estimators each fit has, such as the scaler and the classifier of a pipeline. They divide
        the share of the fit evenly.
    basic : bool
        Whether (epsilon, delta) add up, because a fit has no mu.
    """

    purposes: tuple[str, ...]
    shares: tuple[float, ...]
    positions: tuple[tuple[int, ...], ...]
    charges: tuple[int, ...]
    basic: bool = False

    def __post_init__(self) -> None:
        for place in self.positions:
            if math.fsum(self.shares[i] for i in place) > 1.0 + 1e-9:
                raise ValueError("the fits that read one place take more than the whole budget")

    @property
    def most(self) -> int:
        """Largest number of private estimators that read one place."""
        return max(sum(self.charges[i] for i in place) for place in self.positions)

    def holds_errors(self, epsilon: float, delta: float, of_fits: Sequence[float]) -> bool:
        """Whether the part kept for errors of drawn noise is enough at each place; as the session checks it.

        Parameters
        ----------
        epsilon, delta : float
            Of it all.
        of_fits : sequence of float
            Errors of fits 0, 1, ...; the last error holds for all further fits with its purpose, too. Other fits
            have the usual one.
        """
        kept = ComposedLedger(epsilon, delta, "zero-out", "record", self).epsilon_numerical_error / 2
        errors = []
        for i, purpose in enumerate(self.purposes):
            if of_fits and purpose == self.purposes[0]:
                errors.append(of_fits[min(i, len(of_fits) - 1)])
            else:
                own = self.budget(i, epsilon, delta)
                errors.append(Ledger(*own, "zero-out", "record").epsilon_numerical_error / 2)
        return all(math.fsum(errors[i] for i in p) <= kept * _ROUNDING for p in self.positions)

    def budget(self, index: int, epsilon: float, delta: float) -> tuple[float, float]:
        """The (epsilon, delta) of each private estimator of a fit, where all may cost (epsilon, delta).

        Raises
        ------
        ValueError
            If epsilon is too small for so many fits.
        """
        share = self.shares[index] / self.charges[index]
        if math.isinf(epsilon) or (self.most == 1 and share == 1.0):
            return epsilon, delta
        if self.basic:
            return epsilon * share, delta * share
        own = delta / self.most
        mu = math.sqrt(share) * math.sqrt(ComposedLedger(epsilon, delta, "zero-out", "record", self).mu2)
        found = 0.0
        for _ in range(4):  # error and epsilon depend on each other, by a part of 1e-5: a few rounds find both
            numerical_error = Ledger(max(found, 1e-300), own, "zero-out", "record").epsilon_numerical_error
            ideal = own * (1.0 - 1e-4) * math.exp(-numerical_error)
            found = (accounting.gaussian_epsilon(mu, ideal) + numerical_error) * _DOWN
        if not 0.0 < found < math.inf:
            raise ValueError(
                f"epsilon={epsilon:g} and delta={delta:g} cannot be divided among {self.most} fits: use a larger "
                "epsilon"
            )
        return found, own


class ComposedLedger(Ledger):
    """The ledger of a `ComposedSession`: it keeps more for the samplers' errors, which add up over all fits."""

    def __init__(self, epsilon: float, delta: float, adjacency: str, unit: str, inner: InnerFits) -> None:
        self._most = inner.most
        super().__init__(epsilon, delta, adjacency, unit)
        if self.exact:
            return
        if inner.basic:
            self.set_aside = 1.0  # all of it is for releases without a mu
        else:
            self.plans.append(GaussianPlan(1, 1.0 / math.sqrt(self.mu2), 1.0, "fits inside"))

    @property
    def epsilon_numerical_error(self) -> float:
        """Each of m fits keeps a part of its own epsilon, which is below epsilon (m + 1) / m."""
        return super().epsilon_numerical_error * (1 if self._most == 1 else self._most + 1)


class ComposedSession(PrivacySession):
    """A session for fits inside a fit: it reserves the budget once, and hands out accountants for them.

    Parameters
    ----------
    inner : InnerFits
    epsilon, delta, adjacency, unit, accountant, random_state, estimator, context, group_is, record_is
        As for `PrivacySession`.
    """

    def __init__(
        self,
        *,
        inner: InnerFits,
        epsilon: float,
        delta: float,
        adjacency: str,
        unit: str,
        accountant: "BudgetAccountant | bool | None",
        random_state: object,
        estimator: str,
        context: bytes,
    ) -> None:
        if delta == 0 and epsilon < math.inf:
            raise ValueError("fits inside a fit need delta > 0: their costs are added in mu^2")
        self.inner = inner
        self._charges: list[list[Charge]] = [[] for _ in inner.shares]
        self._met: set[str] = set()
        self._reports: list[list[PrivacyReport]] = [[] for _ in inner.shares]
        super().__init__(
            epsilon=epsilon, delta=delta, adjacency=adjacency, unit=unit,
            accountant=accountant,  # type: ignore[arg-type]
            random_state=random_state,  # type: ignore[arg-type]
            estimator=estimator, context=context,
        )  # fmt: skip
        # Beside the stream of `keys`, whose first number spends the reservation: a choice of places is no release.
        self._choices = noise.KeyStream(
            random_state,  # type: ignore[arg-type]
            info=b"places" + context,
        )

    def _new_ledger(  # type: ignore[override]
        self, epsilon: float, delta: float, adjacency: str, unit: str, **unused: object
    ) -> Ledger:
        return ComposedLedger(epsilon, delta, adjacency, unit, self.inner)

    # ---------------------------------------------------------------- choices that read no value

    def seed(self) -> int | None:
        """A seed for an inner fit of a seeded session, for tests; else None."""
        return int(self._choices.integers(2**31, 1)[0]) if self._choices.seeded else None

    def positions(self, n_units: int, shares: Sequence[float]) -> NDArray[np.int64]:
        """The place of each unit, from fresh coins; nothing of the data is read.

        Parameters
        ----------
        n_units : int
            Number of units; private under add-remove.
        shares : sequence of float
            Of the places; the sum is 1.

        Returns
        -------
        ndarray of shape (n_units,)
            Under replace-one and zero-out the sizes are public: the cumulated shares, rounded down, and at least
            one unit at each place if there are enough. Under add-remove every unit draws its place for itself.
        """
        ends = np.cumsum(np.asarray(shares, dtype=np.float64))
        if self.adjacency == "add-remove":
            coins = self._choices.integers(_COINS, n_units)
            return np.searchsorted(np.round(ends[:-1] * _COINS), coins, side="right")
        cuts = public_cuts(n_units, shares)
        found = np.empty(n_units, dtype=np.int64)
        found[self._choices.permutation(n_units)] = np.repeat(np.arange(len(shares)), cuts)
        return found

    # ---------------------------------------------------------------- fits inside

    def budget(self, index: int) -> tuple[float, float]:
        """The (epsilon, delta) that each private estimator of fit ``index`` gets."""
        return self.inner.budget(index, self.epsilon, self.delta)

    def payer(self, index: int) -> "BudgetAccountant | bool":
        """The accountant of fit ``index``: False without privacy, which no accountant holds."""
        if self.exact:
            return False
        return InnerAccountant(lambda charge: self._admit(index, charge))

    @property
    def committed(self) -> bool:
        """Whether a fit inside may have released something, so that the budget is spent."""
        return self._keys.stream is not None

    def _admit(self, index: int, charge: InnerCharge) -> tuple[Callable[[], None], Callable[[], None]]:
        with self._lock:
            self._check_open()
            if (charge.adjacency, charge.unit) != (self.adjacency, self._ledger.protects):
                raise PrivacyBudgetExceeded(
                    f"a fit inside this one protects one {charge.unit} under {charge.adjacency}, and not one "
                    f"{self._ledger.protects} under {self.adjacency}"
                )
            held = self._charges[index]
            held.append(charge.terms)
            try:
                self._check_charges(index)
            except PrivacyBudgetExceeded:
                held.pop()
                raise

        def hand_back() -> None:
            held.remove(charge.terms)

        return self._spend, hand_back

    def _spend(self) -> None:
        with self._lock:
            self._check_open()
            self._keys.commit()

    def _check_charges(self, index: int) -> None:
        """Refuse a fit that costs more than its share, or noise errors that the session does not hold."""
        inner, ledger, held = self.inner, self._ledger, self._charges[index]
        share = inner.shares[index] * _ROUNDING
        enough = len(held) <= inner.charges[index]
        if inner.basic:
            enough &= math.fsum(c.epsilon for c in held) <= share * self.epsilon
            enough &= math.fsum(c.delta for c in held) <= share * self.delta
        else:
            enough &= math.fsum(c.mu**2 for c in held) <= share * ledger.mu2
            errors, tails = ledger.epsilon_numerical_error / 2, ledger.delta_numerical_error
            for place in inner.positions:
                at_place = [c for i in place for c in self._charges[i]]
                enough &= math.fsum(c.log_error for c in at_place) <= errors * _ROUNDING
                enough &= math.fsum(c.tail for c in at_place) <= tails * _ROUNDING
        if not enough:
            hint = ""
            if not inner.basic and math.inf in [c.mu for c in held]:
                hint = (
                    ": it has no mu, as of fits on minibatches, and the planned fits have one. Give a batch_size "
                    "below or above the sizes of all parts"
                )
            raise PrivacyBudgetExceeded(
                f"a fit inside this one ({inner.purposes[index]}) costs more than its part of the budget{hint}"
            )

    def add(self, index: int, reports: Sequence[PrivacyReport], *, met: tuple[str, ...] = ()) -> None:
        """Keep the reports of fit ``index``, one for each private estimator.

        Parameters
        ----------
        index : int
        reports : sequence of PrivacyReport
        met : tuple of str, default=()
            Assumptions of the reports that the fits around meet, so that the report of it all leaves them out.

        Raises
        ------
        PrivacyAccountingError
            If they do not match the charges.
        """
        self._met.update(met)
        if self.exact:
            self._reports[index] = list(reports)
            return
        held = self._charges[index]
        fine = len(reports) == len(held) > 0
        for report, charge in zip(reports, held):
            fine &= report.guarantee == "proven" and report.epsilon <= charge.epsilon * _ROUNDING
            fine &= (report.adjacency, report.unit) == (self.adjacency, self._ledger.protects)
        if not fine:
            raise PrivacyAccountingError(
                "the reports of a fit inside this one do not match its charges: this is a bug in skdp "
                "or in an estimator, please report it. The result is discarded"
            )
        self._reports[index] = list(reports)

    # ---------------------------------------------------------------- report

    @property
    def released(self) -> bool:
        """Whether all fits inside have released."""
        return all(self._reports)

    def report(
        self,
        *,
        public: Mapping[str, object] | None = None,
        assumptions: tuple[str, ...] = (),
        leaks: tuple[str, ...] = (),
        unproven: bool = False,
        erratum: str | None = None,
        post_processing: tuple[str, ...] = (),
    ) -> PrivacyReport:
        """Recheck each place from the ledger rows of the fits that read it, and report the dearest place's rows.

        Parameters
        ----------
        public, assumptions, leaks, unproven, erratum, post_processing
            As for `PrivacySession.report`. The assumptions and leaks of the fits inside are added.

        Returns
        -------
        PrivacyReport

        Raises
        ------
        PrivacyAccountingError
            If the releases at a place cost more than the claim.
        """
        with self._lock:
            if not self.exact:
                self._write_dearest()
            for line in claim.inner_lines(self._ledger, self._reports):
                if line not in self._met:
                    self._ledger.assume(line)
            known = self._ledger.assumptions
            return super().report(
                public=public,
                assumptions=tuple(line for line in assumptions if line not in known),
                leaks=tuple(dict.fromkeys([*leaks, *claim.inner_leaks(self._reports)])),
                unproven=unproven,
                erratum=erratum,
                post_processing=post_processing,
            )

    def _write_dearest(self) -> None:
        ledger, dearest = self._ledger, -1.0
        numerical_error = np.zeros(2)
        kept: tuple[list[LedgerRow], list[tuple[float, float]]] = ([], [])
        for place in self.inner.positions:
            reports = [(self.inner.purposes[i], r) for i in place for r in self._reports[i]]
            scratch = Ledger(self.epsilon, self.delta, self.adjacency, self.unit)
            for purpose, report in reports:
                for row in report.mechanisms:
                    line = {key: value for key, value in row.items() if key != "purpose"}
                    scratch.write(line, f"{purpose}: {row['purpose']}")
            sums = [math.fsum(r.numerical_error[j] for _, r in reports) for j in (0, 1)]
            numerical_error = np.maximum(numerical_error, sums)
            ledger.rows, ledger.numerical_error = scratch.rows, sums
            if self.inner.basic:
                ledger.inner_claims = [(r.epsilon, r.delta) for _, r in reports]
                cost = math.fsum(r.epsilon for _, r in reports)
            else:
                cost = accounting.rows_mu(ledger.rows)
            claim.recheck(ledger, claim.claimed(ledger))
            if cost > dearest:
                dearest, kept = cost, (ledger.rows, ledger.inner_claims)
        ledger.rows, ledger.inner_claims = kept
        ledger.numerical_error = numerical_error.tolist()


def public_cuts(n_units: int, shares: Sequence[float]) -> list[int]:
    """Public numbers of units at places: cuts are rounded down, and each has a unit if there are enough."""
    # The last place gets what is rounded up, as the test part of scikit-learn; 1e-9 is for sums such as 0.7 + 0.1.
    inner = [math.floor(end * n_units + 1e-9) for end in np.cumsum(shares)[:-1].tolist()]
    ends = [0, *inner, n_units]
    least = min(1, n_units // len(shares))
    for i in range(1, len(shares)):  # from below, then from above, so that no place is empty
        ends[i] = max(ends[i], ends[i - 1] + least)
    for i in range(len(shares) - 1, 0, -1):
        ends[i] = min(ends[i], ends[i + 1] - least)
    return [high - low for low, high in pairwise(ends)]
