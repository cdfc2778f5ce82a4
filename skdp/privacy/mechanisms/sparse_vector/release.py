"""The numeric sparse vector technique as plans and releases of a session.

Privacy
-------
Let integers of sup-norm sensitivity D be compared with a noisy threshold of scale s, each with noise of scale
q. If threshold and the entry that is found are shifted by the change of the data, at most D and 2 D, every answer
"below" before it stays, and a round costs D / s + 2 D / q, however many entries were below. The value of the found
entry has fresh noise of scale v and costs D / v. A run is charged for all its rounds, also without a hit.
"""

import math

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import accounting, noise
from skdp.privacy.accounting.releases import LedgerRow
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.mechanisms.grid import HEADROOM, integer_grid, sensitivity
from skdp.privacy.mechanisms.laplace.cost import Laplace
from skdp.privacy.mechanisms.sampled_pure.cost import SampledPure
from skdp.privacy.mechanisms.sparse_vector import noise as samplers
from skdp.privacy.mechanisms.sparse_vector.cost import AboveThreshold, NumericSparsePlan, calibrate, run_epsilon
from skdp.privacy.session.base import Keys, SessionBase
from skdp.privacy.session.ledger import Ledger, check_number, check_share

_GRID = 2.0**28  # integer sensitivity over epsilon of a query; a choice, not tuned
Found = tuple[NDArray[np.int64], NDArray[np.float64]]
Grid = tuple[float, tuple[float, float, float], int]


class SparseVector(SessionBase):
    """Runs of the numeric sparse vector technique."""

    def plan_numeric_sparse(
        self, runs: int, n_hits: int, share: float = 1.0, *, split: str = "optimal",
        rate: float | None = None, size: int | None = None, parts: int = 1, purpose: str = "steps",
    ) -> NumericSparsePlan:  # fmt: skip
        """Fix a number of numeric-sparse runs and their noise.

        Finding one entry is eps0-DP, releasing its value eps0'-DP. A run is charged ``n_hits`` of each,
        whether or not it halts, and all K = ``runs n_hits`` together take ``share`` of the budget: with
        delta > 0 ``pure_mu(eps0, K)^2 + pure_mu(eps0', K)^2`` of mu^2, with delta = 0
        ``K (eps0 + eps0')`` of epsilon.

        Parameters
        ----------
        runs : int
            At least 1.
        n_hits : int
            At least 1: a run stops at this many released entries.
        share : float, default=1.0
            Share of the session's budget in (0, 1].
        split : {"optimal", "published"}, default="optimal"
            How the budget is divided. "published" spends 76 times as much on finding an entry as on its
            value (the paper's .95 and .05); "optimal" minimises the error of an entry at the edge.
        rate : float, default=None
            If every run is on a batch of its own, drawn freshly and uniformly from this session's key
            stream and never shown: b/n for b of n records without replacement, 1/m for one of m groups with
            ``unit="group"``. A run of pure cost e then costs log(1 + rate (e^e - 1)). Only under
            replace-one. The statement is false for groups that were formed once.
        size : int, default=None
            Number of entries that a run scans. If given, the optimal split uses it, and a plan whose
            sampling error the budget cannot hold is refused here.
        parts : int, default=1
            Number of parts of the records, disjoint and public, chosen without looking at a record. Each
            may take ``runs`` runs, on a statistic of its own records alone: a record is in one part, so it
            is charged for one part's runs (parallel composition; not with ``rate``). The session counts
            the runs of each part; that the parts are disjoint is the caller's promise.
        purpose : str, default="steps"
            Written to the report.

        Returns
        -------
        NumericSparsePlan

        Raises
        ------
        PrivacyBudgetExceeded
            If less than ``share`` is left.
        UnsupportedAccounting
            If ``rate`` is given under another adjacency than replace-one, or the plan is infeasible.

        Examples
        --------
        >>> from skdp.privacy import PrivacySession
        >>> session = PrivacySession(epsilon=1.0, delta=1e-6)
        >>> plan = session.plan_numeric_sparse(runs=10, n_hits=5)
        >>> round(plan.epsilon_query, 4), round(plan.epsilon_value, 4)
        (0.0327, 0.0065)
        """
        with self._lock:
            self._check_open()
            ledger = self._ledger
            runs, n_hits = check_number(runs, "runs"), check_number(n_hits, "n_hits")
            share, parts = check_share(share), check_number(parts, "parts")
            if split not in ("optimal", "published"):
                raise ValueError(f'split must be "optimal" or "published", got {split!r}')
            _check_rate(ledger, rate)
            _check_parts(ledger, parts, rate)
            if ledger.exact:
                plan = NumericSparsePlan(
                    runs, n_hits, math.inf, math.inf, 0.5, math.inf, share, rate, purpose, parts
                )
                ledger.add(plan)
                return plan
            mu2 = share * ledger.mu2 if ledger.delta > 0 else None
            whole = share * (ledger.epsilon - ledger.epsilon_numerical_error) / runs * (1 - 2.0**-40)
            query, value, part = calibrate(split, n_hits, size, rate, mu2=mu2, epsilon=whole, runs=runs)
            cost = run_epsilon(n_hits, query, value, rate)
            plan = NumericSparsePlan(runs, n_hits, query, value, part, cost, share, rate, purpose, parts)
            if size is not None:
                ledger.check_numerical_error(_numerical_error(size, plan, runs * parts))
            if mu2 is None:
                ledger.admit_pure(cost, runs, planned_mu2(plan))
            else:
                ledger.admit(mu2)
            ledger.add(plan)
            return plan

    def numeric_sparse(
        self, bounded: BoundedStatistic, plan: NumericSparsePlan, threshold: float, *, part: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Find up to ``plan.n_hits`` entries of large absolute value and release them with noise.

        The entries are scanned in a fresh, uniformly random order. The scan stops at the ``n_hits``-th
        noisy absolute value above the noisy threshold; nothing is said about entries that are below.

        Parameters
        ----------
        bounded : BoundedStatistic
            With a finite linf bound.
        plan : NumericSparsePlan
            Of this session, with a run left.
        threshold : float
            Public, in units of the statistic.
        part : int, default=0
            Of a plan with ``parts``: the one whose records, and no others, the statistic is about.

        Returns
        -------
        indices : ndarray of shape (n_found,), dtype int64
            Ascending indices into the flattened statistic, at most ``plan.n_hits``.
        values : ndarray of shape (n_found,), dtype float64
            The entries with Laplace noise that was not used in finding them.

        Raises
        ------
        PrivacyBudgetExceeded
            If the plan holds no further run. Nothing was drawn or released.
        """
        with self._lock:
            self._check_open()
            ledger = self._ledger
            ledger.check_statistic(bounded)
            ledger.check_plan(plan, plan.runs * plan.parts)
            taken = ledger.taken(plan)
            _check_part(plan, part, taken)
            if isinstance(threshold, bool) or not float(threshold) == threshold:
                raise ValueError("threshold must be a number and not NaN")
            if not ledger.exact:
                made = numeric_sparse_grid(bounded, plan, ledger.adjacency)
            # A record is in one part: the ledger counts the runs of the part that took most.
            most = taken[part] == max(taken)

            def use() -> None:
                ledger.use(plan)
                taken[part] += 1

            def draw(stream: noise.KeyStream) -> tuple[Found, *tuple[LedgerRow, ...]]:
                found, *rows = numeric_sparse(bounded, plan, float(threshold), made, stream)
                return found, *(row if most else {**row, "count": 0} for row in rows)

            if ledger.exact:
                use()
                return _exact(self._keys, bounded, plan.n_hits, float(threshold))
            return self._release(
                draw, numerical_error=_numerical_error(bounded.size, plan, 1), admit=use, purpose=plan.purpose
            )

    def numeric_sparse_scales(
        self, bounded: BoundedStatistic, plan: NumericSparsePlan
    ) -> tuple[float, float, float]:
        """Scales of the Laplace noise that `numeric_sparse` uses; public, 0 without privacy.

        A threshold can be chosen by them: of d entries that are 0, ``d exp(-t / query_scale) / 2`` are
        above t by the noise of the comparison alone.

        Parameters
        ----------
        bounded : BoundedStatistic
            With a finite linf bound.
        plan : NumericSparsePlan

        Returns
        -------
        threshold_scale, query_scale, value_scale : float
            In units of the statistic; the standard deviation is sqrt(2) times the scale.
        """
        ledger = self._ledger
        if ledger.exact:
            return 0.0, 0.0, 0.0
        unit, (threshold, query, value), _ = numeric_sparse_grid(bounded, plan, ledger.adjacency)
        return unit * threshold, unit * query, unit * value


def numeric_sparse_grid(bounded: BoundedStatistic, plan: NumericSparsePlan, adjacency: str) -> Grid:
    """Return (unit, scales in units, integer sup-norm sensitivity) of a run, from public numbers only.

    The sensitivity is ``D = floor(s / unit) + 1 + roundings`` with the declared bound s. The unit makes D
    about ``eps0 2^28``, so that the scales do not depend on s: one table of noise serves all runs.

    Raises
    ------
    PrivacyBudgetExceeded
        If the statistic and the noise do not fit on one grid of 64-bit integers.
    """
    s = sensitivity(bounded, "linf", adjacency, "a sparse vector release")
    total = math.floor(plan.epsilon_query * _GRID)
    free = total - 1 - bounded._value.roundings
    if free <= total / 2:
        raise PrivacyBudgetExceeded(
            f"a round of epsilon={plan.epsilon_query:.3g} does not fit on the grid; ask for fewer runs or "
            "hits, or a larger epsilon"
        )
    unit = s / free * (1 + 2.0**-50)
    coarse, moved = integer_grid(bounded, s, unit)
    if coarse > unit:
        unit, total = coarse, moved
    part = plan.threshold_part
    scales = (
        total / (plan.epsilon_query * part) * (1 + 2.0**-50),
        2.0 * total / (plan.epsilon_query * (1.0 - part)) * (1 + 2.0**-50),
        total / plan.epsilon_value * (1 + 2.0**-50),
    )
    low, high = noise.SCALE_RANGE
    if not low <= min(scales) <= max(scales) <= high:
        raise PrivacyBudgetExceeded(
            f"noise scales of {scales[0]:.3g}, {scales[1]:.3g} and {scales[2]:.3g} units cannot be drawn on "
            "one grid; ask for another epsilon"
        )
    return unit, scales, total


def numeric_sparse(
    bounded: BoundedStatistic, plan: NumericSparsePlan, threshold: float, made: Grid, stream: noise.KeyStream
) -> tuple[Found, *tuple[LedgerRow, ...]]:
    """Release up to ``plan.n_hits`` entries of large absolute value, with noise.

    Returns
    -------
    indices, values : ndarray of shape (n_found,)
        Indices into the flattened statistic, ascending, as int64; the entries as float64.
    *ledger_rows : dict
        The cost of a whole run, however many entries were found.
    """
    unit, scales, total = made
    integers = bounded._value.on_grid(unit).ravel()
    limit = round(min(max(threshold / unit, -HEADROOM), HEADROOM))
    indices, released = samplers.numeric_sparse(integers, limit, plan.n_hits, scales, stream)
    moved, hits = total * unit, plan.n_hits
    values: NDArray[np.float64] = released * np.float64(unit)
    if plan.rate is not None:
        inner = run_epsilon(hits, plan.epsilon_query, plan.epsilon_value, None)
        run = SampledPure(
            epsilon=plan.epsilon_run, epsilon_unsampled=inner, sampling_rate=plan.rate,
            sensitivity=moved, grid=unit,
        )  # fmt: skip
        return (indices, values), run.describe()
    found = AboveThreshold(
        epsilon=plan.epsilon_query, count=hits, sensitivity=moved, grid=unit,
        threshold_scale=scales[0] * unit, query_scale=scales[1] * unit,
    )  # fmt: skip
    shown = Laplace(epsilon=plan.epsilon_value, count=hits, sensitivity=moved, grid=unit)
    return (indices, values), found.describe(), shown.describe()


def _check_rate(ledger: Ledger, rate: float | None) -> None:
    if rate is None:
        return
    if not 0 < rate <= 1:
        raise ValueError(f"rate must be in (0, 1], got {rate!r}")
    if ledger.adjacency != "replace-one":
        raise UnsupportedAccounting(
            "amplification by a fresh uniform batch is proven under replace-one only: the proof "
            f"exchanges two records of the batch, and this session's adjacency is {ledger.adjacency!r}"
        )


def _check_parts(ledger: Ledger, parts: int, rate: float | None) -> None:
    if parts > 1 and rate is not None:
        raise UnsupportedAccounting(
            "a batch of a fixed part is not a fresh sample: give parts or a rate, not both"
        )
    if parts > 1 and ledger.adjacency == "add-remove":
        raise UnsupportedAccounting("under adjacency='add-remove' the sizes of parts are private; use 'zero-out'")


def _check_part(plan: NumericSparsePlan, part: int, taken: list[int]) -> None:
    """Refuse a part that took its runs already."""
    if not 0 <= part < plan.parts:
        raise ValueError(f"part must be between 0 and {plan.parts - 1}, got {part!r}")
    if taken[part] >= plan.runs:
        raise PrivacyBudgetExceeded(
            f"the plan holds {plan.runs} runs of each part and this part took all of them; nothing was released"
        )


def _numerical_error(size: int, plan: NumericSparsePlan, runs: int) -> tuple[float, float]:
    shift = max(plan.epsilon_query, plan.epsilon_value)
    return noise.numeric_sparse_numerical_error(size, plan.n_hits, runs, shift)


def _exact(
    keys: Keys, bounded: BoundedStatistic, n_hits: int, threshold: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    values = bounded._value.plain().ravel()
    order = keys.commit().permutation(values.size)
    indices = np.sort(order[np.abs(values[order]) >= threshold][:n_hits])
    return indices, values[indices]


def planned_mu2(plan: NumericSparsePlan) -> float:
    """What all runs of a plan cost in mu^2, made or not; with delta = 0 the budget counts epsilons instead."""
    if plan.rate is not None:
        return accounting.pure_mu(plan.epsilon_run, plan.runs) ** 2
    hits = plan.runs * plan.n_hits
    query = accounting.pure_mu(plan.epsilon_query, hits) ** 2
    return query + accounting.pure_mu(plan.epsilon_value, hits) ** 2
