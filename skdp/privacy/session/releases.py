"""Releases: a statistic, its cost and its noise.

Every function follows one order. First everything that can be refused is refused. Then the plan's
release is used up and the accountant's reservation is spent (`Keys.commit`). Only then the statistic is computed
and noise is drawn; the ledger row follows. So a refusal draws nothing and charges nothing, and an interrupted
release stays charged.
"""

import math
import sys
from collections.abc import Callable
from numbers import Real
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import accounting, mechanisms, noise
from skdp.privacy.accounting.releases import LedgerRow
from skdp.privacy.batches import Batch, BatchPart, BatchPlan, batch_slack
from skdp.privacy.bounded import Bounded
from skdp.privacy.session.base import SessionBase
from skdp.privacy.session.ledger import GaussianPlan, Ledger, check_number, check_share

__all__ = ["Releases", "check_plan"]

Released = TypeVar("Released", NDArray[np.float64], NDArray[np.int64])


class Releases(SessionBase):
    """Releases of statistics of all records, and of batches with Gaussian noise."""

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
                ledger.check_slack(noise.laplace_slack(size * releases, epsilon))
        elif not ledger.exact and ledger.delta > 0:
            part = share * ledger.mu2
            if not part > 0.0:
                raise UnsupportedAccounting(
                    f"epsilon={ledger.epsilon:g} and delta={ledger.delta:g} are too small to compute the noise: "
                    "use a larger epsilon"
                )
            multiplier = math.sqrt(releases / part)
            ledger.check_slack(noise.gaussian_slack(size * releases, multiplier))

    def gaussian(self, bounded: Bounded, plan: GaussianPlan | BatchPlan | BatchPart) -> NDArray[np.float64]:
        """Release a statistic with the noise of ``plan``.

        Parameters
        ----------
        bounded : Bounded
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
        return self._released(
            bounded,
            plan,
            lambda drawn_with, stream: mechanisms.gaussian(bounded, drawn_with, stream),
            lambda: bounded._value.plain(),
        )

    def gaussian_above(
        self, bounded: Bounded, plan: GaussianPlan | BatchPlan | BatchPart, limit: float
    ) -> NDArray[np.int64]:
        """Release where a statistic with the noise of ``plan`` is at least ``limit``.

        It costs as much as `gaussian`, whose result it is computed from. Entries of a batch's sum that are 0 are
        not visited, and most of their noise is not drawn to the last bit. So its time depends on the number of
        others.

        Parameters
        ----------
        bounded : Bounded
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
            lambda drawn_with, stream: mechanisms.gaussian_above(bounded, drawn_with, stream, limit),
            lambda: np.flatnonzero(bounded._value.plain().ravel() >= limit),
        )

    def _released(
        self,
        bounded: Bounded,
        plan: GaussianPlan | BatchPlan | BatchPart,
        release: Callable[[mechanisms.Noise, noise.KeyStream], tuple[Released, LedgerRow]],
        exact: Callable[[], Released],
    ) -> Released:
        """A Gaussian release, or some function of it."""
        with self._lock:
            self._check_open()
            ledger = self._ledger
            ledger.check_statistic(bounded, batches=True)
            if isinstance(plan, BatchPart) and type(plan) is not BatchPart:
                raise TypeError("a part of a batch is one of plan.parts, not of a subclass")
            own, index = (plan.plan, plan.index) if isinstance(plan, BatchPart) else (plan, 0)
            batch = check_plan(ledger, bounded, own, index)
            if isinstance(plan, BatchPlan) and len(plan.shares) > 1:
                raise UnsupportedAccounting(
                    "this plan releases several statistics of each batch: release each with its own of plan.parts"
                )
            first = batch is None or not batch._spent
            if not ledger.exact:
                drawn_with = ledger.noise(bounded, plan)
                slack = ledger.release_slack(own, bounded.size, plan.noise_multiplier)
                drawn = batch_slack(own) if isinstance(own, BatchPlan) and first else (0.0, 0.0)
                ledger.charge_slack((slack[0] + drawn[0], slack[1] + drawn[1]))
            if first:
                ledger.use(own)
            if batch is not None:
                batch._spent.add(index)
            if ledger.exact:
                return exact()
            ledger.open_batch = batch
            counted = batch is not None and batch._counted[0]
            released, line = release(drawn_with, self._keys.commit())
            alone = ledger.open_batch is batch
            if isinstance(own, BatchPlan):
                # The planned multiplier: the real one is larger by a rounding, which differs between grids.
                short = min(1.0, float(line["noise_multiplier"]) / plan.noise_multiplier)
                line.update(own.describe(), noise_multiplier=own.noise_multiplier * short)
                # The first row is that of the whole batch, or partition. A statistic with too little noise gets a
                # row of its own.
                line["count"] = int(not counted or short < 1.0)
            ledger.write(line, plan.purpose)
            if batch is not None:
                batch._counted[0] = True
            if isinstance(plan, BatchPart) and not alone:  # by a function that `clipped_sum` calls
                raise UnsupportedAccounting(
                    "something else was released while this part of a batch was computed: the part is charged, "
                    "and not released"
                )
            ledger.open_batch = batch
            return released

    def noise_std(self, bounded: Bounded, plan: GaussianPlan | BatchPlan | BatchPart) -> float:
        """Standard deviation of the noise that `gaussian` adds to each entry: public, 0 without privacy."""
        return 0.0 if self._ledger.exact else self._ledger.noise(bounded, plan).std

    def laplace(self, bounded: Bounded, epsilon: float, *, purpose: str = "statistic") -> NDArray[np.float64]:
        """Release a statistic with discrete Laplace noise, ``epsilon``-DP by itself.

        Parameters
        ----------
        bounded : Bounded
            With a finite l1 bound.
        epsilon : float
            Cost of this release, finite and > 0.
        purpose : str, default="statistic"

        Returns
        -------
        ndarray of float64

        Raises
        ------
        PrivacyBudgetExceeded
            If the session does not hold the cost. Nothing was drawn or released.
        """
        with self._lock:
            self._check_open()
            ledger = self._ledger
            ledger.check_statistic(bounded)
            if ledger.exact:
                return bounded._value.plain()
            cost = accounting.pure_mu(_positive(epsilon)) ** 2
            ledger.charge_slack(noise.laplace_slack(bounded.size, epsilon))
            ledger.admit_pure(epsilon, 1, cost)
            released, line = mechanisms.laplace(bounded, epsilon, ledger.adjacency, self._keys.commit())
            ledger.write(line, purpose)
            return released

    def gumbel_top_k(
        self, bounded: Bounded, k: int, epsilon: float, *, purpose: str = "selection"
    ) -> NDArray[np.int64]:
        """Select the k largest entries privately.

        Parameters
        ----------
        bounded : Bounded
            Scores with a finite linf bound.
        k : int
            Between 1 and the number of scores.
        epsilon : float
            Bounded range of **one** of the k choices; the call costs k of them.
        purpose : str, default="selection"

        Returns
        -------
        ndarray of int64 of shape (k,)

        Raises
        ------
        PrivacyBudgetExceeded
            If the session does not hold the cost. Nothing was drawn or released.
        """
        with self._lock:
            self._check_open()
            ledger = self._ledger
            ledger.check_statistic(bounded)
            if not 1 <= k <= bounded.size:
                raise ValueError(f"k must be between 1 and the {bounded.size} scores, got {k!r}")
            if ledger.exact:
                scores = bounded._value.plain().ravel()
                if k == 1:
                    return np.array([np.argmax(scores)], dtype=np.int64)
                order = np.argsort(-scores, kind="stable")
                return order[:k].astype(np.int64)
            cost = k * accounting.bounded_range_mu(_positive(epsilon)) ** 2
            ledger.charge_slack(noise.selection_slack(k, bounded.size, epsilon))
            ledger.admit_pure(epsilon, k, cost)
            indices, line = mechanisms.gumbel_top_k(bounded, k, epsilon, ledger.adjacency, self._keys.commit())
            ledger.write({**line, "count": k}, purpose)
            return indices

    def selection_epsilon(self, choices: int, share: float) -> float:
        """Epsilon of one choice so that ``choices`` of them take ``share`` of the session's mu^2.

        With delta = 0 the choices divide ``share`` of epsilon itself.
        """
        ledger = self._ledger
        if ledger.exact:
            return math.inf
        if ledger.delta == 0:
            return (ledger.epsilon - ledger.epsilon_slack) * share / choices * (1 - 2.0**-40)
        return accounting.bounded_range_epsilon(math.sqrt(share * ledger.mu2 / choices))


def check_plan(
    ledger: Ledger, bounded: Bounded, plan: GaussianPlan | BatchPlan, index: int, *, chooses: bool = False
) -> Batch | None:
    """Refuse a plan that is used up, and a batch that is not of this plan or was used before for this part."""
    batch = bounded._value.batch
    if isinstance(plan, BatchPlan) and (plan.choices > 0) != chooses:
        raise UnsupportedAccounting("a plan with choices is released by `selected_gaussian`, and no other plan is")
    projected = isinstance(plan, BatchPlan) and plan.n_projections > 0
    if (bounded._value.projected is not None) != projected:
        raise UnsupportedAccounting(
            "gradients that are clipped by projections, and these alone, are released with a plan of projections"
        )
    begun = batch is not None and batch._plan is plan and bool(batch._spent)
    ledger.check_plan(plan, math.inf if begun else plan.releases)
    if not isinstance(plan, BatchPlan):
        if batch is not None:
            raise UnsupportedAccounting("a statistic of a batch is released with the plan of its batch only")
        return None
    if batch is None:
        raise UnsupportedAccounting(
            "this plan releases statistics of its own batches only: draw one with "
            "session.draw(plan, records) and give it as batch="
        )
    if batch._plan is not plan:
        raise UnsupportedAccounting("the statistic's batch was drawn from another plan")
    if type(index) is not int or not 0 <= index < len(plan.shares):
        raise ValueError(f"the plan has {len(plan.shares)} parts, got index {index!r}")
    if index in batch._spent:
        raise PrivacyBudgetExceeded("this batch was used already; draw a new one")
    if begun and not ledger.exact and ledger.open_batch is not batch:
        raise UnsupportedAccounting(
            "something else was released since this batch's first statistic: the parts of a batch are "
            "proven as one release, without others between them"
        )
    return batch


def _positive(epsilon: float) -> float:
    if not (isinstance(epsilon, (int, float)) and 0 < epsilon < math.inf):
        raise ValueError(f"epsilon of a release must be a finite number > 0, got {epsilon!r}")
    return float(epsilon)
