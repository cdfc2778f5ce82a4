"""PrivacySession: owns budget, adjacency, unit, key stream, plans and ledger of one fit.

A plan fixes the number of releases and their noise before the data are touched. The claim is the epsilon of the
plans, also when fewer releases were made. Before each release the session checks it against its plan. It refuses a
release that the plan does not hold: nothing is drawn, nothing leaves. `PrivacySession.report` recomputes epsilon
from the ledger by other code than the calibration.

Costs are counted in Gaussian DP. A release that is mu_i-GDP takes mu_i^2 of the total; sums of mu^2 compose
exactly and stay valid when later releases depend on earlier ones (Smith & Thakurta 2022; Koskela,
Tobaben & Honkela 2023). A session with delta = 0 holds pure mechanisms only and sums their epsilons.
"""

import math
from collections.abc import Mapping
from types import TracebackType
from typing import Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from skdp._compat import warn_user
from skdp.exceptions import PrivacyLeakWarning
from skdp.privacy.accounting.amplification import FULL_BATCH
from skdp.privacy.adjacency import check_adjacency, check_unit
from skdp.privacy.batches import BatchPlan
from skdp.privacy.budget import BudgetAccountant, Reservation, check_accountant, part_assumption, payer
from skdp.privacy.log import LOGGER
from skdp.privacy.mechanisms.best_of.release import BestOfTrials
from skdp.privacy.mechanisms.laplace.release import LaplaceReleases
from skdp.privacy.mechanisms.objective_perturbation.release import PerturbedMinima
from skdp.privacy.mechanisms.selected_gaussian.release import SelectedReleases
from skdp.privacy.mechanisms.sparse_vector.release import SparseVector
from skdp.privacy.mechanisms.top_k.release import TopKReleases
from skdp.privacy.mechanisms.vocabulary.release import Vocabularies
from skdp.privacy.noise.keystream import Seed, check_seed
from skdp.privacy.records import PrivateRecords
from skdp.privacy.report import PrivacyReport
from skdp.privacy.session import claim
from skdp.privacy.session.base import Keys
from skdp.privacy.session.engine import EngineReleases
from skdp.privacy.session.group_rows import GroupRows
from skdp.privacy.session.ledger import Ledger
from skdp.privacy.session.minibatches import Minibatches


class PrivacySession(
    Vocabularies,
    PerturbedMinima,
    Minibatches,
    SelectedReleases,
    LaplaceReleases,
    TopKReleases,
    SparseVector,
    BestOfTrials,
    EngineReleases,
    GroupRows,
):
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
        has no mu (`objective_perturbation`). It is added to the rest by basic composition, so the Gaussian
        currency is the mu of the remaining (epsilon, delta), and the claim is always the whole.
    group_is : {"group", "owner"}, default="group"
        With unit="group": the kind of group, for the report and the accountant's ledger. A ledger of one kind
        takes no fit of the other, since persons and owners are different promises.
    record_is : {"record", "window"}, default="record"
        With unit="record": the kind of record, likewise. "window" is a window of words of a text.
    minibatches : bool, default=False
        Whether sampled releases may be planned (`plan_batches`). An accountant then holds (epsilon, delta)
        without a mu: none is proven for sampled releases.
    best_of : bool, default=False
        Whether the whole budget is for the best of a random number of trials (`plan_best_of`), and nothing else
        can be released. An accountant then holds (epsilon, delta) without a mu: none is proven for that.

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
    >>> from skdp.privacy import BoundedStatistic, PrivacySession
    >>> session = PrivacySession(epsilon=1.0, delta=1e-6, random_state=0)
    >>> plan = session.plan_gaussian(releases=1)
    >>> total = session.gaussian(BoundedStatistic([120.0, 80.0], l2=1.0), plan)  # doctest: +SKIP
    """

    epsilon: float
    delta: float
    adjacency: str
    unit: str
    exact: bool
    _new_ledger: type[Ledger] = Ledger  # class of the ledger of this session

    def __init__(
        self,
        records: PrivateRecords | None = None,
        *,
        epsilon: float,
        delta: float,
        adjacency: str = "replace-one",
        unit: str = "record",
        accountant: BudgetAccountant | Literal[False] | None = None,
        random_state: Seed = None,
        estimator: str = "PrivacySession",
        context: bytes = b"",
        set_aside: float = 0.0,
        group_is: str = "group",
        record_is: str = "record",
        minibatches: bool = False,
        best_of: bool = False,
    ) -> None:
        check_budget(epsilon, delta)
        check_adjacency(adjacency)
        check_unit(unit)
        if group_is not in ("group", "owner"):
            raise ValueError(f"group_is must be 'group' or 'owner', got {group_is!r}")
        if record_is not in ("record", "window"):
            raise ValueError(f"record_is must be 'record' or 'window', got {record_is!r}")
        check_seed(random_state)
        if best_of and (set_aside or minibatches or delta == 0):
            raise ValueError("best_of=True needs delta > 0, and no set_aside or minibatches beside it")
        if not 0 <= set_aside < 1 or (set_aside and delta == 0 and epsilon < math.inf):
            raise ValueError(f"set_aside must be in [0, 1), and 0 with delta=0, got {set_aside!r}")
        self._estimator = estimator
        ledger = self._new_ledger(
            epsilon, delta, adjacency, unit, set_aside=set_aside, minibatches=minibatches,
            best_of=best_of,
        )  # fmt: skip
        self.epsilon, self.delta, self.exact = ledger.epsilon, ledger.delta, ledger.exact
        self.set_aside = ledger.set_aside
        self.adjacency, self.unit = adjacency, unit
        ledger.protects = group_is if unit == "group" else record_is
        # Without noise no context is needed, and a non-private estimator draws the same batches.
        drawn_for = b"" if self.exact else context + repr((epsilon, delta, adjacency)).encode()
        super().__init__(ledger, Keys(random_state, drawn_for))
        if records is not None:
            self._check_records(records)
        self._keys.reservation = self._reserve(accountant, seeded=random_state is not None)
        if random_state is not None and not self.exact:
            self._warn_seeded()

    @classmethod
    def without_privacy(
        cls, *, unit: str = "record", random_state: Seed = None, context: bytes = b""
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

    # ---------------------------------------------------------------- secret choices

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
            return self._keys.commit().permutation(n, size)

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
            return self._keys.commit().integers(bound, size)

    # ---------------------------------------------------------------- report, closing, pickling

    @property
    def mu(self) -> float:
        """The Gaussian-DP parameter of the budget, public: inf without privacy, 0 with delta = 0."""
        return math.sqrt(self._ledger.mu2)

    @property
    def minibatches(self) -> bool:
        """Whether the session may release statistics of sampled batches."""
        return self._ledger.minibatches

    @property
    def planned_samplings(self) -> frozenset[str]:
        """The kinds of sampling of the batches that were planned; full batches are none."""
        plans = (plan for plan in self._ledger.plans if isinstance(plan, BatchPlan))
        return frozenset(plan.sampling for plan in plans if plan.sampling != FULL_BATCH)

    @property
    def has_mu(self) -> bool:
        """Whether all that the session may release is Gaussian-DP; pure and pointwise budgets have no mu here."""
        ledger = self._ledger
        pointwise = ledger.set_aside or ledger.minibatches or ledger.best_of
        return self.delta > 0 and not pointwise

    @property
    def released(self) -> bool:
        """Whether anything was released."""
        return bool(self._ledger.rows)

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
        """Recheck the ledger and return the report of the session's cost.

        Parameters
        ----------
        public : dict, default=None
            Public quantities that the fit used.
        assumptions : tuple of str, default=()
            Besides the one that every report lists: each record, or each person's group, is there once.
        leaks : tuple of str, default=()
            What was taken from the data and is not covered by epsilon; a seed is added.
        unproven : bool, default=False
            Of an exact session: the estimator added noise of its own that no valid proof supports.
        erratum : str, default=None
            Of the published constant, with the fit's replacement.
        post_processing : tuple of str, default=()
            Computations from released numbers, which have no further cost.

        Returns
        -------
        PrivacyReport

        Raises
        ------
        PrivacyAccountingError
            If the ledger costs more than the claim: a bug in skdp.
        """
        # A release of another thread is in the claim and in the rows, or in neither.
        with self._lock:
            return claim.make_report(
                self._ledger,
                self._estimator,
                self._keys.seeded,
                public,
                assumptions,
                leaks,
                unproven,
                erratum,
                post_processing,
            )

    def __enter__(self) -> "PrivacySession":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Hand the reservation back if nothing was released; otherwise it stays spent.

        Waits for a release that is under way in another thread. Every later one is refused.
        """
        with self._lock:
            self._shut = True
            self._keys.close(released=bool(self._ledger.rows))

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("a PrivacySession cannot be copied or pickled: it holds a key")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"PrivacySession(epsilon={self.epsilon:g}, delta={self.delta:g}, "
            f"adjacency={self.adjacency!r}, unit={self.unit!r})"
        )

    def _reserve(
        self, accountant: BudgetAccountant | Literal[False] | None, *, seeded: bool
    ) -> Reservation | None:
        check_accountant(accountant)
        charged = payer(self._estimator) if accountant is None else accountant
        self._log_open(bool(charged))
        if charged is None or charged is False:
            return None
        if self.exact:
            raise ValueError(
                "epsilon=inf has no privacy cost that an accountant could hold; "
                "fit outside the accountant or use the non-private estimator"
            )
        ledger = self._ledger
        gaussian = self.has_mu
        errors = (ledger.epsilon_numerical_error / 2, ledger.delta_numerical_error)
        if charged.part is not None:
            ledger.assumptions.append(part_assumption(charged.part, ledger.protects, self.adjacency))
        return charged.reserve(
            estimator=self._estimator,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            unit=ledger.protects,
            mu=math.sqrt(ledger.mu2) if gaussian else None,
            noise_error=errors if gaussian else (0.0, 0.0),
            seeded=seeded,
        )

    def _log_open(self, charged: bool) -> None:
        if not self.exact:
            LOGGER.info(
                "%s: epsilon=%.6g, delta=%.6g, adjacency=%s, protects one %s, %s",
                self._estimator, self.epsilon, self.delta, self.adjacency, self._ledger.protects,
                "its accountant is asked" if charged else "no accountant",
            )  # fmt: skip

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
        unit = records.shape.unit
        if unit != self.unit:
            raise ValueError(f"the session's unit is {self.unit!r} but the records' unit is {unit!r}")
        if self.adjacency == "add-remove" and records.shape.n_public is None:
            raise ValueError(
                "under adjacency='add-remove' the number of records is private: give n_public, "
                "a public number by which means are divided"
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
