"""PrivacySession: owns budget, adjacency, unit, key stream, plans and ledger of one fit.

Plans, not odometers: a plan fixes the number of releases and their noise before the data are touched;
the claim is the epsilon of what was planned, also when fewer releases were made. Before each release
the session checks it against its plan and refuses what the plan does not hold: nothing is drawn,
nothing leaves. `PrivacySession.report` recomputes epsilon from the ledger by other code than the
calibration.

The currency is Gaussian DP. A release that is mu_i-GDP takes mu_i^2 of the total; sums of mu^2 compose
exactly and stay valid when later releases depend on earlier ones (Smith & Thakurta 2022; Koskela,
Tobaben & Honkela 2023). A session with delta = 0 holds pure mechanisms only and sums their epsilons.
"""

import math
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from skdp._compat import warn_user
from skdp.exceptions import PrivacyLeakWarning
from skdp.privacy import accounting, mechanisms, noise
from skdp.privacy.adjacency import check_adjacency, check_unit
from skdp.privacy.batches import Batch, BatchGroup, BatchPlan, Partition
from skdp.privacy.bounded import Bounded
from skdp.privacy.budget import BudgetAccountant, check_accountant, payer
from skdp.privacy.noise.keystream import check_seed
from skdp.privacy.records import PrivateRecords
from skdp.privacy.session.ledger import GaussianPlan, check_number, check_share
from skdp.privacy.session.minibatches import MinibatchReleases, batch_slack_of
from skdp.privacy.session.objective import ObjectiveReleases
from skdp.privacy.session.sparse_vector import NumericSparseReleases

__all__ = ["Batch", "BatchGroup", "BatchPlan", "GaussianPlan", "Partition", "PrivacySession"]


class PrivacySession(MinibatchReleases, ObjectiveReleases, NumericSparseReleases):
    """Turns bounded statistics into released arrays and writes down what that costs.

    Parameters
    ----------
    records : PrivateRecords, default=None
        If given, its unit must be the session's, and under add-remove it must carry ``n_public``.
    epsilon : float
        Budget, > 0. inf releases exact values and guarantees nothing.
    delta : float
        In [0, 1). 0 is possible where every mechanism is pure.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
    unit : {"record", "group"}, default="record"
    accountant : BudgetAccountant or False, default=None
        Charged with (epsilon, delta) when the session is made. None takes the accountant of the
        innermost ``with accountant:`` of this context, if any. False charges none, also inside a block.
    random_state : None, int, RandomState or Generator, default=None
        None draws a fresh key from the operating system. Anything else is for tests: whoever knows or
        guesses the seed can subtract the noise. It warns (PrivacyLeakWarning), and an accountant
        refuses it unless it was made with ``allow_seeded=True``.
    estimator : str, default="PrivacySession"
        Name written to the accountant's ledger and the report.
    context : bytes, default=b""
        Public parameters that enter the key of a seeded stream, so that two different fits with one
        seed do not share their noise.
    set_aside : float, default=0.0
        Share in [0, 1) of (epsilon, delta), both, that is kept for a release which is (epsilon, delta)-DP but
        has no mu (`objective_perturbation`). It is added to the rest by basic composition, so the
        Gaussian currency is that of the remaining (epsilon, delta), and the claim is always the whole.
    minibatches : bool, default=False
        Whether sampled releases may be planned (`plan_batches`). An accountant then holds (epsilon, delta)
        without a mu: none is proven for sampled releases.

    Raises
    ------
    ValueError
        If a parameter is out of range, or an accountant is asked to pay for epsilon = inf.
    PrivacyBudgetExceeded
        If the accountant's ceiling does not hold this session, if the session is seeded, or if an accountant is
        open in another thread or task and this context has none; nothing was read.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.privacy import Bounded, PrivacySession
    >>> session = PrivacySession(epsilon=1.0, delta=1e-6, random_state=0)
    >>> plan = session.plan_gaussian(releases=1)
    >>> total = session.gaussian(Bounded([120.0, 80.0], l2=1.0), plan)  # doctest: +SKIP
    """

    def __init__(
        self,
        records: PrivateRecords | None = None,
        *,
        epsilon: float,
        delta: float,
        adjacency: str = "replace-one",
        unit: str = "record",
        accountant: BudgetAccountant | Literal[False] | None = None,
        random_state: Any = None,
        estimator: str = "PrivacySession",
        context: bytes = b"",
        set_aside: float = 0.0,
        minibatches: bool = False,
    ) -> None:
        check_budget(epsilon, delta)
        check_adjacency(adjacency)
        check_unit(unit)
        check_seed(random_state)
        if not 0 <= set_aside < 1 or (set_aside and delta == 0 and epsilon < math.inf):
            raise ValueError(f"set_aside must be in [0, 1), and 0 with delta=0, got {set_aside!r}")
        super().__init__(float(epsilon), float(delta), adjacency, unit, estimator, set_aside)
        self._minibatches = bool(minibatches)
        self._seed = random_state
        # Without noise there is nothing to keep apart, and a non-private estimator draws the same batches.
        self._context = b"" if self.exact else context + repr((epsilon, delta, adjacency)).encode()
        if records is not None:
            self._check_records(records)
        self._reservation = self._reserve(accountant)
        if random_state is not None and not self.exact:
            self._warn_seeded()

    @classmethod
    def without_privacy(
        cls, *, unit: str = "record", random_state: Any = None, context: bytes = b""
    ) -> "PrivacySession":
        """Make a session that releases exact values and charges no accountant (non-private estimators)."""
        made = cls.__new__(cls)
        PrivacySession.__init__(
            made,
            epsilon=math.inf,
            delta=0.0,
            unit=unit,
            accountant=False,
            random_state=random_state,
            context=context,
        )
        return made

    # ---------------------------------------------------------------- plans

    def plan_gaussian(
        self, releases: int, share: float = 1.0, *, purpose: str = "steps"
    ) -> GaussianPlan:
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
        releases, share = check_number(releases, "releases"), check_share(share)
        if not self.exact and self.delta == 0:
            raise ValueError("Gaussian noise needs delta > 0; delta=0 allows pure mechanisms only")
        with self._lock:
            self._check_open()
            multiplier = 0.0
            if not self.exact:
                self._admit(share * self._mu2)
                multiplier = math.sqrt(releases / (share * self._mu2)) * (1 + 2.0**-40)
            plan = GaussianPlan(releases, multiplier, share, purpose)
            self._plans.append(plan)
        return plan

    # ---------------------------------------------------------------- releases

    def gaussian(self, bounded: Bounded, plan: GaussianPlan | BatchPlan) -> NDArray[np.float64]:
        """Release a statistic with the noise of ``plan``.

        Parameters
        ----------
        bounded : Bounded
            With a finite l2 bound; for a BatchPlan a statistic of a batch of this plan, fresh and not used.
        plan : GaussianPlan or BatchPlan
            Of this session, with a release left.

        Returns
        -------
        ndarray of float64

        Raises
        ------
        PrivacyBudgetExceeded
            If the plan holds no further release. Nothing was drawn or released.
        """
        with self._lock:
            return self._gaussian(bounded, plan)

    def _gaussian(self, bounded: Bounded, plan: GaussianPlan | BatchPlan) -> NDArray[np.float64]:
        self._check(bounded, batches=True)
        self._check_plan(plan, plan.releases)
        batch = self._check_batch(bounded, plan)
        if not self.exact:
            grid = mechanisms.gaussian_grid(bounded, plan.noise_multiplier, self.adjacency)
            slack = noise.gaussian_slack(bounded.size, plan.noise_multiplier)
            drawn = batch_slack_of(plan)
            self._charge_slack((slack[0] + drawn[0], slack[1] + drawn[1]))
        self._use(plan)
        if batch is not None:
            batch._spent = True
        if self.exact:
            return bounded._value.plain()
        released, line = mechanisms.gaussian(bounded, grid, self._key_stream())
        if batch is not None:
            # The planned multiplier: the real one is larger by a rounding, which differs between grids.
            planned = min(plan.noise_multiplier, line["noise_multiplier"])
            line.update(batch._plan.describe(), noise_multiplier=planned)
        self._write(line, plan.purpose)
        return released

    def noise_std(self, bounded: Bounded, plan: GaussianPlan | BatchPlan) -> float:
        """Standard deviation of the noise that `gaussian` adds to each entry: public, 0 without privacy."""
        if self.exact:
            return 0.0
        return mechanisms.gaussian_grid(bounded, plan.noise_multiplier, self.adjacency).std

    def selection_epsilon(self, choices: int, share: float) -> float:
        """Epsilon of one choice so that ``choices`` of them take ``share`` of the session's mu^2.

        With delta = 0 the choices divide ``share`` of epsilon itself.
        """
        if self.exact:
            return math.inf
        if self.delta == 0:
            return (self.epsilon - self._epsilon_slack) * share / choices * (1 - 2.0**-40)
        return accounting.bounded_range_epsilon(math.sqrt(share * self._mu2 / choices))

    def laplace(
        self, bounded: Bounded, epsilon: float, *, purpose: str = "statistic"
    ) -> NDArray[np.float64]:
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
            self._check(bounded)
            if self.exact:
                return bounded._value.plain()
            cost = accounting.pure_mu(_positive(epsilon)) ** 2
            self._charge_slack(noise.laplace_slack(bounded.size, epsilon))
            self._admit_pure(epsilon, 1, cost)
            released, line = mechanisms.laplace(
                bounded, epsilon, self.adjacency, self._key_stream()
            )
            self._write(line, purpose)
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
            self._check(bounded)
            if not 1 <= k <= bounded.size:
                raise ValueError(f"k must be between 1 and the {bounded.size} scores, got {k!r}")
            if self.exact:
                scores = bounded._value.plain().ravel()
                if k == 1:
                    return np.array([np.argmax(scores)], dtype=np.int64)
                order = np.argsort(-scores, kind="stable")
                return order[:k].astype(np.int64)
            cost = k * accounting.bounded_range_mu(_positive(epsilon)) ** 2
            self._charge_slack(noise.selection_slack(k, bounded.size, epsilon))
            self._admit_pure(epsilon, k, cost)
            indices, line = mechanisms.gumbel_top_k(
                bounded, k, epsilon, self.adjacency, self._key_stream()
            )
            self._write({**line, "count": k}, purpose)
            return indices

    # ---------------------------------------------------------------- life and death

    def permutation(self, n: int, size: int | None = None) -> NDArray[np.int64]:
        """The beginning of a uniformly random order of 0..n-1, from this session's key stream.

        For every random choice that the accounting relies on: batches, partitions, schedules. Secret unless
        the caller shows it.

        Parameters
        ----------
        n : int
        size : int, default=None
            How much of the order; None gives all of it.

        Returns
        -------
        ndarray of shape (size,), dtype int64
        """
        with self._lock:
            self._check_open()
            return self._key_stream().permutation(n, size)

    def integers(self, bound: int, size: int) -> NDArray[np.int64]:
        """Independent uniform integers in 0..bound-1, from this session's key stream; as `permutation`.

        Parameters
        ----------
        bound, size : int

        Returns
        -------
        ndarray of shape (size,), dtype int64
        """
        with self._lock:
            self._check_open()
            return self._key_stream().integers(bound, size)

    def __enter__(self) -> "PrivacySession":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hand the reservation back if nothing was released; otherwise it stays spent.

        Waits for a release that is under way in another thread. Every later one is refused.
        """
        with self._lock:
            self._closed = True
            if self._reservation is not None and not self._rows and not self._started():
                self._reservation.release()
            self._reservation = None

    def __reduce__(self) -> Any:
        raise TypeError("a PrivacySession cannot be copied or pickled: it holds a key")

    def __copy__(self) -> Any:
        return self.__reduce__()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__reduce__()

    def __repr__(self) -> str:
        return (
            f"PrivacySession(epsilon={self.epsilon:g}, delta={self.delta:g}, "
            f"adjacency={self.adjacency!r}, unit={self.unit!r})"
        )

    # ---------------------------------------------------------------- inside

    def _reserve(self, accountant: BudgetAccountant | Literal[False] | None) -> Any:
        check_accountant(accountant)
        charged = payer(self._estimator) if accountant is None else accountant
        if charged is None or charged is False:
            return None
        if self.exact:
            raise ValueError(
                "epsilon=inf has no privacy cost that an accountant could hold; "
                "fit outside the accountant or use the non-private estimator"
            )
        gaussian = self.delta > 0 and not self._set_aside and not self._minibatches
        return charged.reserve(
            estimator=self._estimator,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            unit=self.unit,
            mu=math.sqrt(self._mu2) if gaussian else None,
            pure=self.delta == 0,
            noise_error=(self._epsilon_slack / 2, self._delta_slack) if gaussian else (0.0, 0.0),
            samples=self._minibatches,
            seeded=self._seed is not None,
        )

    def _warn_seeded(self) -> None:
        try:
            warn_user(
                "random_state is a seed: whoever knows it, or guesses it (scikit-learn's ensembles set 31 bits), "
                "can subtract the noise, and no epsilon holds against them. Seeds are for tests; "
                "random_state=None is for real data",
                PrivacyLeakWarning,
            )
        except PrivacyLeakWarning:  # where warnings are errors nothing will be released
            self.close()
            raise

    def _check_records(self, records: PrivateRecords) -> None:
        if records.unit != self.unit:
            raise ValueError(
                f"the session's unit is {self.unit!r} but the records' unit is {records.unit!r}"
            )
        if self.adjacency == "add-remove" and records.n_public is None:
            raise ValueError(
                "under adjacency='add-remove' the number of records is private: give n_public, "
                "the public number that means divide by"
            )


def check_budget(epsilon: float, delta: float) -> None:
    """Raise TypeError or ValueError unless epsilon is > 0 (or inf) and delta is in [0, 1)."""
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    if not epsilon > 0:
        raise ValueError(f"epsilon must be > 0 (inf means no privacy), got {epsilon!r}")
    if not 0 <= delta < 1:
        raise ValueError(
            f"delta must be in [0, 1) and far below 1/n, for example 1e-6, got {delta!r}; 0 is for methods "
            "of pure mechanisms alone"
        )


def _positive(epsilon: float) -> float:
    if not (isinstance(epsilon, (int, float)) and 0 < epsilon < math.inf):
        raise ValueError(f"epsilon of a release must be a finite number > 0, got {epsilon!r}")
    return float(epsilon)
