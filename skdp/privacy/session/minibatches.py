"""Minibatches as plans and releases of a session.

Claim. Let the other releases of the session hold at most m^2 of mu^2 (a filter: they may be chosen as the fit
goes), and let the batches' releases be fixed: T_i of them with the dominating pair D_i. Then the whole is
dominated by G_m x D_1^T_1 x ..., G_m the pair N(m, 1), N(0, 1), whatever the order and however the others depend
on earlier results. Proof by induction over the releases, for all hockey-stick divergences at once: a release of
m_1^2 leaves G_(m') with m'^2 = m^2 - m_1^2, and G_(m_1) x G_(m') = G_m; a release on a batch leaves one D_i less.
After the result y of a release the divergence of order g of the later releases is at most the remaining pair's at
g times the likelihood ratio of y; the mean over y is the divergence of the release x the remaining pair, which
grows if the release is replaced by its dominating pair (Zhu, Dong & Wang 2022). Nothing else is used of D_i, so it
may be the pair of sums that were clipped by random projections, on full batches too; y then holds the projections.
It may be the pair of a choice of coordinates and the noise on these, whose y holds both. The noise of the batches
is calibrated to this product, before anything was released; a later plan could depend on a result, and is refused.

Several statistics of one batch (`BatchPlan.parts`) count as one Gaussian release. Fix the units of the batch.
Let P0 be the law of its released statistics if a unit is absent, P1 if it is there, P1' if it has other values.
Statistic j has noise of z_j times its sensitivity, so the unit moves its mean by at most 1 / z_j standard
deviations (half of that under replace-one, where z_j is relative to two contributions). It may be chosen
because of the statistics before it, such as a clip norm. Gaussian DP composes adaptively: P1 against P0, and
P1' against P0, are no easier to tell apart than N(m, 1) from N(0, 1), where m^2 is the sum of the squares: that
of one release with z^-2 = sum z_j^-2. The dominating pairs of a Poisson batch follow from these trade-offs
alone. Under zero-out and add-remove the laws are (1 - q) P0 + q P1 and P0. Under replace-one they are (1 - q)
P0 + q P1 and (1 - q) P0 + q P1'; an event of probability Phi(-t) under P0 has at most Phi(m - t) under P1 and
at least Phi(-m - t) under P1', and a half-space reaches both at once. A full batch is the case q = 1. The
parts are released one after the other, with no other release between them, so they are one step of the proof
above. No such argument is written down for batches without replacement: refused.

Batches of a partition (`PARTITION`) are the parts of a random order of the units: one order for a pass, and each
unit is in one part of it. The number of units is public, and the order is drawn without looking at the records: on
neighbouring data sets the orders have one law, and a unit that is absent or replaced keeps its place. Give the
orders to the adversary: a statement about each order holds for their mixture. In a pass all releases but one are
then the same functions of the other units and of the earlier releases: their laws given those are equal, and mu is
0. One release has the unit in its batch. Its statistic moves by at most 1 / z standard deviations of its noise,
mu = 1 / z, whatever was released before. Gaussian DP composes adaptively: a pass has mu = 1 / z, and k passes have
sqrt(k) / z. A last pass that is not finished counts whole. Nothing is amplified, whoever knows the orders. The
ledger writes one row of a release on all units for each pass, with its first released batch. Batches are drawn one
after the other, and no more of them than were planned: so no more passes are begun than were planned. Under
add-remove a unit that comes would move the others to other parts: refused.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import noise
from skdp.privacy.accounting.amplification import FULL_BATCH, PARTITION, POISSON, WITHOUT_REPLACEMENT
from skdp.privacy.accounting.sampled import require_supported
from skdp.privacy.batches import Batch, BatchGroup, BatchPlan, Partition, batch_numerical_error
from skdp.privacy.mechanisms.gaussian.cost import Gaussian
from skdp.privacy.session.base import SessionBase
from skdp.privacy.session.ledger import Ledger, check_number, check_share

if TYPE_CHECKING:
    from skdp.privacy.records import PrivateRecords

_KINDS = (POISSON, WITHOUT_REPLACEMENT, PARTITION)


class Minibatches(SessionBase):
    """Plans of releases on batches, and secret choices of units."""

    def plan_batches(
        self, groups: Sequence[BatchGroup], *, sampling: str = POISSON, n_units: int, share: float = 1.0
    ) -> tuple[BatchPlan, ...]:
        """Fix numbers of releases on fresh batches and their noise.

        Parameters
        ----------
        groups : sequence of BatchGroup
            All that the session will release on batches. Their noise multipliers are in proportion to
            their weights.
        sampling : {"Poisson", "without replacement", "partition"}, default="Poisson"
            Groups whose batch size reaches ``n_units`` are full batches, whatever the sampling. The batches of a
            partition hold the same number of units, or one less than the largest: ``batch_size`` is lowered to it.
        n_units : int
            Public number of units: `PrivateRecords.n_units`.
        share : float, default=1.0
            Share of the session's budget in (0, 1]: the other releases may take 1 - ``share`` of mu^2,
            and the noise is calibrated to the privacy of both together.

        Returns
        -------
        tuple of BatchPlan
            One a group. Full batches and partitions only: exact Gaussian DP. Poisson: privacy loss distributions.
            Without replacement: Renyi DP, replace-one only.

        Raises
        ------
        PrivacyBudgetExceeded
            If less than ``share`` is left, or something was released already.
        UnsupportedAccounting
            If no proof supports the sampling under this adjacency.

        Examples
        --------
        >>> from skdp.privacy import BatchGroup, PrivacySession
        >>> session = PrivacySession(epsilon=1.0, delta=1e-5, minibatches=True)
        >>> (plan,) = session.plan_batches([BatchGroup(200, 100)], n_units=5000)
        >>> plan.rate, round(plan.noise_multiplier, 1)
        (0.02, 1.1)
        """
        with self._lock:
            self._check_open()
            ledger = self._ledger
            share, n_units = check_share(share), check_number(n_units, "n_units")
            groups = [_checked(group, n_units, ledger) for group in groups]
            if not groups:
                raise ValueError("groups must hold at least one BatchGroup")
            if sampling not in _KINDS:
                raise ValueError(f"sampling must be one of {list(_KINDS)}, got {sampling!r}")
            if sampling != POISSON and any(len(group.parts) > 1 for group in groups):
                raise UnsupportedAccounting(
                    "several statistics of one batch are proven for Poisson batches and full batches only"
                )
            if sampling == PARTITION:
                groups = [_parted(group, ledger.adjacency, n_units) for group in groups]
            ledger.require_gaussian()
            # A mechanism of its own is accounted for by its pairs, on a full batch too.
            sampled = sampling != PARTITION and any(
                group.batch_size < n_units or group.extra is not None for group in groups
            )
            scale = 0.0
            if sampled and not ledger.exact:
                scale = _sampled_scale(ledger, groups, sampling, n_units, share)
            elif not ledger.exact:
                ledger.admit(share * ledger.mu2)
                cost = math.fsum(_passes(group, n_units) / group.weight**2 for group in groups)
                scale = math.sqrt(cost / (share * ledger.mu2)) * (1 + 2.0**-40)
            plans = _plans(groups, sampling, n_units, share, scale)
            ledger.add(*plans)
            ledger.sampled = ledger.sampled or (sampled and not ledger.exact)
            return plans

    def require_feasible_batches(self, size: int, plans: Sequence[BatchPlan], *, scans: bool = False) -> None:
        """Refuse plans whose sampling error the budget cannot hold, before anything is released.

        Parameters
        ----------
        size : int
            Number of values of one release.
        plans : sequence of BatchPlan
        scans : bool, default=False
            Whether choices are made by the sparse vector technique, which draws a number for each value.

        Raises
        ------
        UnsupportedAccounting
            If the proven error of the samplers is more than the part of the budget that pays for it.
        ValueError
            If a plan is to choose more values than there are.
        """
        for plan in plans:
            if plan.extra is not None:
                plan.extra.check_size(size)
        ledger = self._ledger
        if ledger.exact:
            return
        epsilon = delta = 0.0
        for plan in plans:
            drawn = batch_numerical_error(plan)
            if plan.extra is None:
                numerical_error = noise.gaussian_numerical_error(size, plan.noise_multiplier)
            else:
                numerical_error = plan.extra.numerical_error(plan, size, ledger.delta, scans=scans)
            releases = plan.releases * len(plan.shares)
            epsilon += releases * numerical_error[0] + plan.releases * drawn[0]
            delta += releases * numerical_error[1] + plan.releases * drawn[1]
        remedies = [plan.extra.remedy for plan in plans if plan.extra is not None]
        ledger.check_numerical_error((epsilon, delta), max(remedies, default=""))

    def draw(self, plan: BatchPlan, records: "PrivateRecords", *, positions: bool = False) -> Batch:
        """Draw a fresh batch, for one release with the noise of ``plan``.

        Parameters
        ----------
        plan : BatchPlan
            Of this session, with a release left.
        records : PrivateRecords
        positions : bool, default=False
            Whether units get positions too, as `PrivateRecords.gradient_sum` needs them. It needs none where it
            rounds each unit by itself: there none are drawn.

        Returns
        -------
        Batch
            Secret and for one use: a statistic of ``records`` takes it as ``batch=``.
        """
        with self._lock:
            self._check_open()
            return self._sampler.draw(plan, records, positions)

    def partition(self, records: "PrivateRecords", n_blocks: int) -> Partition:
        """Draw a block for every unit without looking at the records.

        The blocks are of equal sizes. Under add-remove each unit's is drawn by itself, so that a unit that goes
        leaves the others where they are.

        Parameters
        ----------
        records : PrivateRecords
        n_blocks : int
            At least 1; public.

        Returns
        -------
        Partition
            Secret, for `skdp.privacy.statistics.support_votes`.
        """
        with self._lock:
            self._check_open()
            return self._sampler.partition(records, n_blocks)


def _sampled_scale(
    ledger: Ledger, groups: Sequence[BatchGroup], sampling: str, n_units: int, share: float
) -> float:
    """The factor of the groups' weights, calibrated with the budget of the other releases."""
    from skdp.privacy.accounting.minibatch import Group, calibrate_batches

    names = [Gaussian.name if group.extra is None else group.extra.name for group in groups]
    require_supported(sampling, ledger.adjacency, names)
    if not ledger.minibatches:
        raise UnsupportedAccounting(
            "a session that samples must be opened with minibatches=True: an accountant then holds "
            "its (epsilon, delta) without a mu"
        )
    if ledger.rows or ledger.sampled or ledger.set_aside:
        raise PrivacyBudgetExceeded(
            "sampled releases are planned once, before anything is released: a later plan could depend on a result"
        )
    ledger.admit(share * ledger.mu2)
    wanted: list[Group] = []
    for g in groups:
        rate = _rate(g.batch_size, n_units)
        if g.extra is None:
            wanted.append((g.weight, rate, g.releases, n_units, g.batch_size))
        else:
            wanted.append((g.weight, g.extra.unit_release(g.releases, sampling, rate)))
    return calibrate_batches(
        ledger.epsilon - ledger.epsilon_numerical_error,
        ledger.ideal_delta,
        wanted,
        mu=math.sqrt(max(0.0, 1.0 - share) * ledger.mu2),
        adjacency=ledger.adjacency,
        sampling=sampling,
    )


def _checked(group: BatchGroup, n_units: int, ledger: Ledger) -> BatchGroup:
    releases = check_number(group.releases, "releases")
    size = min(check_number(group.batch_size, "batch_size"), n_units)
    if not 0 < group.weight < math.inf:
        raise ValueError(f"weight must be finite and > 0, got {group.weight!r}")
    parts = tuple(float(share) for share in group.parts)
    if not all(share > 0 for share in parts) or not abs(math.fsum(parts) - 1.0) <= 1e-9:
        raise ValueError(f"parts must be shares > 0 that add up to 1, got {group.parts!r}")
    parts = tuple(share / max(1.0, math.fsum(parts)) for share in parts)
    extra = group.extra
    if extra is not None:
        extra = extra.checked(ledger.adjacency, len(parts), exact=ledger.exact)
    return BatchGroup(releases, size, float(group.weight), group.purpose, parts, extra)


def _parted(group: BatchGroup, adjacency: str, n_units: int) -> BatchGroup:
    """The group with the size of the largest part."""
    if adjacency == "add-remove":
        raise UnsupportedAccounting(
            "batches of a partition need a public number of units: under add-remove a unit that comes would move "
            "others to other batches"
        )
    if group.extra is not None:
        raise UnsupportedAccounting(
            "batches of a partition have no proof for projections and choices of coordinates"
        )
    n_batches = math.ceil(Fraction(n_units, group.batch_size))
    return replace(group, batch_size=math.ceil(Fraction(n_units, n_batches)))


def _passes(group: BatchGroup, n_units: int) -> int:
    """How often the releases of a partition, or of full batches, see each unit at most."""
    return math.ceil(Fraction(group.releases, math.ceil(Fraction(n_units, group.batch_size))))


def _rate(batch_size: int, n_units: int) -> float:
    """Expected size over number, rounded up: units are drawn with a probability that is rounded down."""
    rate = batch_size / n_units
    return rate if Fraction(rate) >= Fraction(batch_size, n_units) else math.nextafter(rate, 2.0)


def _plans(
    groups: Sequence[BatchGroup], sampling: str, n_units: int, share: float, scale: float
) -> tuple[BatchPlan, ...]:
    if sampling == PARTITION:
        costs = [_passes(g, n_units) / g.weight**2 for g in groups]
    else:
        costs = [g.releases * (g.batch_size / n_units / g.weight) ** 2 for g in groups]
    whole = math.fsum(costs)
    return tuple(
        BatchPlan(
            releases=group.releases,
            sampling=FULL_BATCH if group.batch_size >= n_units else sampling,
            rate=_rate(group.batch_size, n_units),
            batch_size=group.batch_size,
            n_units=n_units,
            noise_multiplier=scale * group.weight,
            share=share * cost / whole,
            purpose=group.purpose,
            shares=group.parts,
            extra=None if group.extra is None else group.extra.planned(scale * group.weight),
        )
        for group, cost in zip(groups, costs)
    )
