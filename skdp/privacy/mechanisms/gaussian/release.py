"""The Gaussian mechanism as plans and releases of a session: on all records, and on batches.

Privacy
-------
For an integer vector x, ``x + round(N) = round(x + N)``: post-processing of the continuous Gaussian mechanism. Its
exact formula holds in any dimension, also for batches and for adaptive choices. Where only the positions of large
entries leave, they are computed from that release.
"""

import math
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from numbers import Real
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import noise
from skdp.privacy.accounting.releases import LedgerRow
from skdp.privacy.batches import Batch, BatchPart, BatchPlan, batch_numerical_error
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.entries import positions_between
from skdp.privacy.mechanisms.gaussian.cost import Gaussian
from skdp.privacy.mechanisms.grid import Noise
from skdp.privacy.session.base import SessionBase
from skdp.privacy.session.ledger import GaussianPlan, check_number, check_share

T = TypeVar("T")
Plan = GaussianPlan | BatchPlan | BatchPart
# The plan of a release, the number of the part of its batch, and the batch.
One = tuple[GaussianPlan | BatchPlan, int, Batch | None]


class GaussianReleases(SessionBase):
    """Releases of statistics of all records, and of batches, with Gaussian noise."""

    def plan_gaussian(self, releases: int, share: float = 1.0, *, purpose: str = "steps") -> GaussianPlan:
        """Fix a number of Gaussian releases and their noise.

        Parameters
        ----------
        releases : int
            At least 1.
        share : float, default=1.0
            Share of the session's mu^2 in (0, 1]; all shares of a session add up to at most 1.
        purpose : str, default="steps"
            Written to the report.

        Returns
        -------
        GaussianPlan

        Raises
        ------
        PrivacyBudgetExceeded
            If less than ``share`` is left.
        """
        with self._lock:
            self._check_open()
            ledger = self._ledger
            releases, share = check_number(releases, "releases"), check_share(share)
            ledger.require_gaussian()
            multiplier = 0.0
            if not ledger.exact:
                ledger.admit(share * ledger.mu2)
                multiplier = math.sqrt(releases / (share * ledger.mu2)) * (1 + 2.0**-40)
            plan = GaussianPlan(releases, multiplier, share, purpose)
            ledger.add(plan)
            return plan

    def require_feasible(self, size: int, releases: int, share: float, *, epsilon: float | None = None) -> None:
        """Refuse a plan whose sampling error the budget cannot hold, before anything is released.

        Parameters
        ----------
        size : int
            Number of values of one release.
        releases : int
        share : float
            Share of the session's mu^2 that the releases take together.
        epsilon : float, default=None
            Of each release, if it has Laplace noise; None is Gaussian noise.

        Raises
        ------
        UnsupportedAccounting
            If the proven error of the sampler is more than the part of the budget that pays for it.
        """
        ledger = self._ledger
        if epsilon is not None:
            if not ledger.exact:
                ledger.check_numerical_error(noise.laplace_numerical_error(size * releases, epsilon))
        elif not ledger.exact and ledger.delta > 0:
            part = share * ledger.mu2
            if not part > 0.0:
                raise UnsupportedAccounting(
                    f"epsilon={ledger.epsilon:g} and delta={ledger.delta:g} are too small to compute the noise: "
                    "use a larger epsilon"
                )
            multiplier = math.sqrt(releases / part)
            ledger.check_numerical_error(noise.gaussian_numerical_error(size * releases, multiplier))

    def gaussian(self, bounded: BoundedStatistic, plan: Plan) -> NDArray[np.float64]:
        """Release a statistic with the noise of ``plan``.

        Parameters
        ----------
        bounded : BoundedStatistic
            With a finite l2 bound; for a BatchPlan a statistic of a batch of this plan, fresh and not used.
        plan : GaussianPlan, BatchPlan or BatchPart
            Of this session, with a release left.

        Returns
        -------
        ndarray of float64

        Raises
        ------
        PrivacyBudgetExceeded
            If the plan holds no further release. Nothing was drawn or released.
        """
        return self._released(bounded, plan, partial(gaussian, bounded), lambda: bounded._value.plain())

    def gaussian_above(self, bounded: BoundedStatistic, plan: Plan, limit: float) -> NDArray[np.int64]:
        """Release where a statistic with the noise of ``plan`` is at least ``limit``.

        It costs as much as `gaussian`, whose result it is computed from. Entries of a batch's sum that are 0
        are not visited, and most of their noise is not drawn to the last bit; the time tells the others' number.

        Parameters
        ----------
        bounded : BoundedStatistic
        plan : GaussianPlan, BatchPlan or BatchPart
            As for `gaussian`.
        limit : float
            Public and finite, in units of the statistic. It is rounded up to the grid of the noise.

        Returns
        -------
        positions : ndarray of int64
            Ascending positions in the flattened statistic.

        Raises
        ------
        TypeError, ValueError
            If ``limit`` is not a finite number.
        PrivacyBudgetExceeded
            If the plan holds no further release. Nothing was drawn or released.
        """
        if isinstance(limit, bool) or not isinstance(limit, Real):
            raise TypeError(f"limit must be a number, got {type(limit).__name__}")
        if not -sys.float_info.max <= limit <= sys.float_info.max:
            raise ValueError("limit must be a finite float64")
        limit = float(limit)
        return self._released(
            bounded,
            plan,
            lambda drawn_with, stream: gaussian_above(bounded, drawn_with, stream, limit),
            lambda: np.flatnonzero(bounded._value.plain().ravel() >= limit),
        )

    def _released(
        self,
        bounded: BoundedStatistic,
        plan: Plan,
        draw: Callable[[Noise, noise.KeyStream], tuple[T, LedgerRow]],
        exact: Callable[[], T],
    ) -> T:
        """A Gaussian release of all values, or some function of it."""
        with self._lock:
            one, ledger = self._checked(bounded, plan, "gaussian"), self._ledger
            if ledger.exact:
                self._use(*one)
                return exact()
            own, drawn_with = one[0], ledger.noise(bounded, plan)
            if isinstance(own, BatchPlan) and own.extra is not None:
                error = own.extra.numerical_error(own, bounded.size, ledger.delta, scans=False)
            else:
                error = noise.gaussian_numerical_error(bounded.size, plan.noise_multiplier)
            return self._draw_planned(plan, one, partial(draw, drawn_with), error)

    def _checked(self, bounded: BoundedStatistic, plan: Plan, method: str) -> One:
        """Refuse a plan that is used up, and a batch that is not of this plan or was used before for this part."""
        self._check_open()
        ledger = self._ledger
        ledger.check_statistic(bounded, batches=True)
        if isinstance(plan, BatchPart) and type(plan) is not BatchPart:
            raise TypeError("a part of a batch is one of plan.parts, not of a subclass")
        own, index = (plan.plan, plan.index) if isinstance(plan, BatchPart) else (plan, 0)
        batch, source = bounded._value.batch, bounded._value
        extra = own.extra if isinstance(own, BatchPlan) else None
        wanted = "gaussian" if extra is None else extra.method
        if wanted != method:
            raise UnsupportedAccounting(f"this plan is released by `{wanted}`, and not by `{method}`")
        if source.extra is not None:
            source.extra.check_plan(extra)
        if extra is not None:
            extra.check_source(source.extra)
        begun = batch is not None and batch._plan is own and bool(batch._spent)
        ledger.check_plan(own, math.inf if begun else own.releases)
        if not isinstance(own, BatchPlan):
            if batch is not None:
                raise UnsupportedAccounting("a statistic of a batch is released with the plan of its batch only")
            return own, index, None
        if batch is None:
            raise UnsupportedAccounting(
                "this plan releases statistics of its own batches only: draw one with "
                "session.draw(plan, records) and give it as batch="
            )
        if batch._plan is not own:
            raise UnsupportedAccounting("the statistic's batch was drawn from another plan")
        if type(index) is not int or not 0 <= index < len(own.shares):
            raise ValueError(f"the plan has {len(own.shares)} parts, got index {index!r}")
        if index in batch._spent:
            raise PrivacyBudgetExceeded("this batch was used already; draw a new one")
        if begun and not ledger.exact and ledger.open_batch is not batch:
            raise UnsupportedAccounting(
                "something else was released since this batch's first statistic: the parts of a batch are "
                "proven as one release, without others between them"
            )
        if own is plan and len(own.shares) > 1:
            raise UnsupportedAccounting(
                "this plan releases several statistics of each batch: release each with its own of plan.parts"
            )
        return own, index, batch

    def _use(self, own: GaussianPlan | BatchPlan, part: int, batch: Batch | None) -> None:
        """Use up a release of the plan; the first part of a batch pays for all."""
        if batch is None or not batch._spent:
            self._ledger.use(own)
        if batch is not None:
            batch._spent.add(part)

    def _draw_planned(
        self,
        plan: Plan,
        one: One,
        draw: Callable[[noise.KeyStream], tuple[T, LedgerRow]],
        error: tuple[float, float],
    ) -> T:
        """Draw a release that passed all checks; ``error`` is the error of its noise alone."""
        ledger, (own, _, batch), admit = self._ledger, one, partial(self._use, *one)
        if not isinstance(own, BatchPlan) or batch is None:
            return self._release(draw, numerical_error=error, admit=admit, purpose=own.purpose)
        counted, broken = batch._counted[0], False

        def drawn(stream: noise.KeyStream) -> tuple[T, LedgerRow]:
            nonlocal broken
            ledger.open_batch = batch
            released, line = draw(stream)
            broken = ledger.open_batch is not batch
            # The planned multiplier: the real one is larger by a rounding, which differs between grids.
            short = min(1.0, float(line["noise_multiplier"]) / plan.noise_multiplier)
            line.update(own.describe(), noise_multiplier=own.noise_multiplier * short)
            # The first row is for the whole batch, or partition; a statistic with too little noise gets its own.
            line["count"] = int(not counted or short < 1.0)
            return released, line

        if not batch._spent:
            of_batch = batch_numerical_error(own)
            error = error[0] + of_batch[0], error[1] + of_batch[1]
        released = self._release(drawn, numerical_error=error, admit=admit, purpose=own.purpose)
        batch._counted[0] = True
        if isinstance(plan, BatchPart) and broken:  # by a function that `clipped_sum` calls
            raise UnsupportedAccounting(
                "something else was released while this part of a batch was computed: the part is charged, "
                "and not released"
            )
        ledger.open_batch = batch
        return released

    def noise_std(self, bounded: BoundedStatistic, plan: Plan) -> float:
        """Standard deviation of the noise that `gaussian` adds to each entry: public, 0 without privacy."""
        return 0.0 if self._ledger.exact else self._ledger.noise(bounded, plan).std


def gaussian(
    bounded: BoundedStatistic, drawn_with: Noise, stream: noise.KeyStream
) -> tuple[NDArray[np.float64], LedgerRow]:
    """Compute the integers of ``bounded``, draw the noise that `gaussian_grid` gave for it, and add.

    Returns
    -------
    released : ndarray of float64
    ledger_row : dict
    """
    unit, sigma, _ = drawn_with
    integers = bounded._value.on_grid(unit)
    drawn = noise.rounded_gaussian(sigma, integers.size, stream).reshape(integers.shape)
    return noise.add_noise(drawn, integers, unit), dict(_gaussian_row(drawn_with))


def gaussian_above(
    bounded: BoundedStatistic, drawn_with: Noise, stream: noise.KeyStream, limit: float
) -> tuple[NDArray[np.int64], LedgerRow]:
    """Return where the release of `gaussian` would be at least ``limit``, rounded up to the grid.

    This is a function of that release, so it costs the same. Entries of a sum that are 0 are not visited, and the
    last bits of their noise are drawn where they decide.

    Returns
    -------
    positions : ndarray of int64
        Ascending positions in the flattened statistic.
    ledger_row : dict
    """
    unit, sigma, _ = drawn_with
    units = max(-(2.0**62), min(2.0**62, limit / unit))
    least = math.ceil(units)
    support, integers = bounded._value.support(unit)
    drawn = noise.rounded_gaussian(sigma, support.size, stream)
    listed = support[drawn + integers >= least]
    others = noise.rounded_gaussian_above(sigma, least, bounded.size - support.size, stream)
    positions = np.concatenate([listed, positions_between(support, others)])
    return np.sort(positions), dict(_gaussian_row(drawn_with))


@lru_cache(maxsize=64)
def _gaussian_row(drawn_with: Noise) -> LedgerRow:
    unit, sigma, total = drawn_with
    made = Gaussian(noise_multiplier=sigma * unit / total, sensitivity=total, noise_std=sigma * unit, grid=unit)
    return made.describe()
