"""The account of a session: its plans, the releases that they still hold, and the releases made.

Nothing here draws noise or reads a statistic, and nothing here locks: `PrivacySession` holds its lock
around every call.
"""

import math
from dataclasses import dataclass, replace
from logging import DEBUG, INFO
from weakref import ReferenceType, ref

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import accounting
from skdp.privacy.accounting.amplification import FULL_BATCH
from skdp.privacy.accounting.releases import LedgerRow, Release, release_of, release_type
from skdp.privacy.accounting.roots import last_safe
from skdp.privacy.batches import Batch, BatchPart, BatchPlan
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.log import LOGGER
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.registry import module_of
from skdp.privacy.mechanisms.sparse_vector.cost import NumericSparsePlan

# Parts of epsilon and delta for the sampler's proven error; the noise gets the rest. A choice, not tuned.
_EPSILON_NUMERICAL_ERROR, _DELTA_NUMERICAL_ERROR = 1e-5, 1e-4
_LEAST_PART = 1e-9  # part of a release's epsilon; a smaller remainder is not proposed in the error message
_SHARE_ROUNDING = 1 + 1e-9  # shares such as 0.7 + 0.3 may sum to one ulp above 1


@dataclass(frozen=True)
class GaussianPlan:
    """A fixed number of Gaussian releases with one noise multiplier; made by a session only.

    Attributes
    ----------
    releases : int
    noise_multiplier : float
        Standard deviation over l2 sensitivity; 0 without privacy.
    share : float
        Share of the session's mu^2.
    purpose : str
    """

    releases: int
    noise_multiplier: float
    share: float
    purpose: str = "steps"


Plan = GaussianPlan | NumericSparsePlan | BatchPlan


def check_number(value: int, name: str) -> int:
    """`value` as an int >= 1."""
    if type(value) is bool or int(value) != value or value < 1:
        raise ValueError(f"{name} must be an int >= 1, got {value!r}")
    return int(value)


def check_epsilon(epsilon: float, *, exact: bool = False) -> float:
    """`epsilon` of one release as a float > 0; finite, unless the session is exact."""
    if not (isinstance(epsilon, (int, float)) and 0 < epsilon and (exact or epsilon < math.inf)):
        raise ValueError(f"epsilon of a release must be a {'' if exact else 'finite '}number > 0, got {epsilon!r}")
    return float(epsilon)


def check_share(share: float) -> float:
    """`share` as a float in (0, 1]."""
    if not 0 < share <= _SHARE_ROUNDING:
        raise ValueError(f"share must be in (0, 1], got {share!r}")
    return min(float(share), 1.0)


def _text(plan: Plan) -> str:
    """Number and noise of planned releases: they follow from public numbers and released ones."""
    if isinstance(plan, NumericSparsePlan):
        return f"{plan.runs} runs of the sparse vector technique, each epsilon={plan.epsilon_run:.6g}"
    noise = f"{plan.releases} releases, noise multiplier {plan.noise_multiplier:.6g}"
    return f"{noise}, batches {plan.sampling}" if isinstance(plan, BatchPlan) else noise


class Ledger:
    """Budget, plans and rows of one session.

    Attributes
    ----------
    epsilon, delta : float
    adjacency, unit : str
    set_aside : float
    minibatches : bool
        Whether sampled releases may be planned.
    best_of : bool
        Whether the whole budget is for the best of a random number of trials.
    best_of_plan : BestOfPlan or None
    best_of_used : bool
        Whether the trials were made.
    exact : bool
        No privacy: nothing is counted.
    mu2 : float
        Total that plans divide; inf without privacy, 0 with delta = 0.
    rows : list of dict
        The rows of the releases.
    plans : list of plans
    vocabularies : list of plans
        Those of vocabularies, each around one of the plans.
    pure : list of (epsilon, count, mu^2)
        Releases that came without a plan.
    numerical_error : list of float
        The samplers' proven errors in (epsilon, delta).
    late : bool
        Whether something was planned after a release.
    begun : bool
        Whether something was drawn for a release, maybe without a row: a draw that raised may be tried again.
    sampled : bool
    assumptions : list of str
        Assumptions of the claim beside the ones that every report lists.
    inner_claims : list of (epsilon, delta)
        Of fits inside the session that are added by basic composition, and of which the rows are then.
    open_batch : Batch or None
        The batch of the last release: only of this one further parts may follow.
    """

    def __init__(
        self, epsilon: float, delta: float, adjacency: str, unit: str, *,
        set_aside: float = 0.0, minibatches: bool = False, best_of: bool = False,
    ) -> None:  # fmt: skip
        self.epsilon, self.delta = float(epsilon), float(delta)
        self.adjacency, self.unit = adjacency, unit
        self.protects = unit  # the unit's name in the report
        self.set_aside, self.minibatches = float(set_aside), bool(minibatches)
        self.best_of, self.best_of_used = bool(best_of), False
        self.best_of_plan: object = None
        self.exact = math.isinf(epsilon)
        self.rows: list[LedgerRow] = []
        self.plans: list[Plan] = []
        self.vocabularies: list[object] = []
        self.pure: list[tuple[float, int, float]] = []
        self.numerical_error = [0.0, 0.0]
        self.late = self.sampled = self.begun = False
        self.assumptions: list[str] = []
        self.open_batch: Batch | None = None
        self.inner_claims: list[tuple[float, float]] = []
        self._by_cost: dict[tuple[object, ...], LedgerRow] = {}  # rows by the cost of their release
        self._used: dict[int, int] = {}
        self._taken: dict[int, list[int]] = {}  # runs that each part of a plan took
        # Only the last noise is kept, and weakly: a reference to the statistic would keep its records in memory.
        self._noise: tuple[ReferenceType[BoundedStatistic], object, grid.Noise] | None = None
        self.mu2 = self.calibrate()

    def calibrate(self) -> float:
        """The mu^2 that the budget buys."""
        if self.exact:
            return math.inf
        if self.delta == 0:
            return 0.0
        left = 1.0 - self.set_aside
        epsilon, delta = left * (self.epsilon - self.epsilon_numerical_error), left * self.ideal_delta
        mu = accounting.gaussian_mu(epsilon, delta)
        return mu * mu

    # ---------------------------------------------------------------- parts of the budget

    @property
    def epsilon_numerical_error(self) -> float:
        """Kept for the sampler's error: probabilities are off by at most exp(numerical error / 2) a side."""
        return min(self.epsilon * _EPSILON_NUMERICAL_ERROR, 1e-4)

    @property
    def delta_numerical_error(self) -> float:
        """Kept for the tails that the samplers cut off; with delta = 0 the report names it."""
        return self.delta * _DELTA_NUMERICAL_ERROR if self.delta > 0 else 2.0**-80

    @property
    def ideal_delta(self) -> float:
        """Delta of the ideal mechanisms, whose samplers make no error."""
        return self.delta * (1 - _DELTA_NUMERICAL_ERROR) * math.exp(-self.epsilon_numerical_error)

    def aside(self) -> tuple[float, float]:
        """The share that is set aside: (epsilon, delta) of an exact mechanism without mu."""
        if not self.set_aside:
            raise PrivacyBudgetExceeded(
                "nothing is set aside: open the session with set_aside, a share of (epsilon, delta)"
            )
        share = self.set_aside
        return share * (self.epsilon - self.epsilon_numerical_error), share * self.ideal_delta

    def require_gaussian(self) -> None:
        """Refuse Gaussian noise where delta is 0."""
        if not self.exact and self.delta == 0:
            raise ValueError("Gaussian noise needs delta > 0; delta=0 allows pure mechanisms only")

    def planned_mu2(self) -> float:
        """What all plans, and the releases without one, may take."""
        return sum([plan.share * self.mu2 for plan in self.plans]) + sum([mu2 for _, _, mu2 in self.pure])

    def pure_epsilon(self) -> float:
        """Sum of the pure epsilons."""
        return math.fsum(e * c for e, c, _ in self.pure)

    # ---------------------------------------------------------------- plans

    def add(self, *plans: Plan) -> None:
        """Keep plans that were admitted, and write them to the log.

        A plan made after a release may follow from it, so it is no line of level INFO.
        """
        self.plans.extend(plans)
        level = DEBUG if self.rows else INFO
        for plan in () if self.exact else plans:
            LOGGER.log(level, "plan: %s: %s", plan.purpose, _text(plan))

    def admit(self, mu2: float, remedy: str = "Give the plans smaller shares") -> None:
        """Refuse a plan that the budget does not hold; ``remedy`` tells the user how to mend it."""
        if self.best_of:
            raise UnsupportedAccounting("the session was opened with best_of=True: its whole budget is for trials")
        self.late = self.late or self.begun or bool(self.rows)
        if self.planned_mu2() + mu2 > self.mu2 * _SHARE_ROUNDING:
            left = max(0.0, 1.0 - self.planned_mu2() / self.mu2)
            raise PrivacyBudgetExceeded(
                f"the session has {100 * left:.4g} % of its mu^2 left, less than was asked for "
                f"({100 * mu2 / self.mu2:.4g} %); nothing was released. {remedy}"
            )

    def admit_pure(self, epsilon: float, count: int, mu2: float) -> None:
        """Refuse a pure release that the budget does not hold; else write down its cost."""
        if self.delta > 0:
            pure = "With delta > 0 a pure release counts by its mu: open the session with delta=0 if all are pure"
            self.admit(mu2, "Add noise" if math.isinf(epsilon) else pure)
        elif self.pure_epsilon() + count * epsilon > self.epsilon - self.epsilon_numerical_error:
            raise PrivacyBudgetExceeded(
                f"{self.pure_epsilon():g} of epsilon={self.epsilon:g} is spent and {count} x "
                f"{epsilon:g} more does not fit (a part {_EPSILON_NUMERICAL_ERROR:g} is kept for the sampler); "
                "nothing was released"
            )
        self.late = self.late or self.begun or bool(self.rows)
        if self.pure and self.pure[-1][0] == epsilon:  # equal releases are one entry, replaced at once
            _, before, paid = self.pure[-1]
            self.pure[-1] = (float(epsilon), count + before, mu2 + paid)
        else:
            self.pure.append((float(epsilon), count, mu2))

    def admit_unplanned(self, release: Release) -> None:
        """Refuse a release that the budget does not hold, or that no recheck knows; else write down its cost."""
        line = release.describe()
        module_of(line, "recheck").terms(line)
        if release.count < 1 or release.sampling != FULL_BATCH:
            raise UnsupportedAccounting(
                f"a mechanism releases a statistic of all records at least once: got count={release.count} and "
                f"sampling={release.sampling!r}"
            )
        one = replace(release, count=1)
        epsilon, mu = one.pure_epsilon(), one.mu()
        if not mu >= 0.0 or not (epsilon is None or epsilon >= 0):
            raise UnsupportedAccounting(
                f"the costs of {release.name!r} must be >= 0, got mu={mu!r} and {epsilon!r}"
            )
        if epsilon is None:
            self.require_gaussian()
        try:
            self.admit_pure(math.inf if epsilon is None else float(epsilon), release.count, release.count * mu**2)
        except PrivacyBudgetExceeded as error:
            raise PrivacyBudgetExceeded(f"{error}{self._fitting(release)}") from None

    def _fitting(self, release: Release) -> str:
        """Which release like this one would fit, in words; the number is rounded to the safe side."""
        name, line = release.parameter_name, {**release.describe(), "count": 1}
        pure, is_noise = self.delta == 0, name == "noise_multiplier"
        whole = self.epsilon - self.epsilon_numerical_error
        left = whole - self.pure_epsilon() if pure else self.mu2 - self.planned_mu2()

        def scaled(part: float) -> float:
            return release.parameter / part if is_noise else release.parameter * part

        def excess(part: float) -> float:
            one = release_of({**line, name: scaled(part)})
            return release.count * float(one.pure_epsilon() or 0 if pure else one.mu() ** 2) - left

        if not excess(_LEAST_PART) < 0.0:
            return ""
        number = scaled(last_safe(excess, _LEAST_PART, 1.0) * (1 - 1e-3))
        return f". A release with {name} {'>=' if is_noise else '<='} {number:.4g} would fit"

    def check_plan(self, plan: Plan, releases: float) -> None:
        """Refuse a plan that is not one of this session's own, or is used up."""
        for own in self.plans:
            if plan is own:
                break
        else:
            raise PrivacyBudgetExceeded("this plan belongs to another session, or is a copy")
        if self._used.get(id(plan), 0) >= releases:
            raise PrivacyBudgetExceeded(
                f"the plan holds {releases} releases and all are used; nothing was released"
            )

    def use(self, plan: Plan) -> None:
        """Count one release of a plan."""
        self._used[id(plan)] = self._used.get(id(plan), 0) + 1

    def taken(self, plan: NumericSparsePlan) -> list[int]:
        """Runs that each part of a plan took."""
        return self._taken.setdefault(id(plan), [0] * plan.parts)

    # ---------------------------------------------------------------- releases

    def check_statistic(self, bounded: BoundedStatistic, *, batches: bool = False) -> None:
        """Refuse an object that is no statistic, a statistic of another unit, or one that needs a public count."""
        if not isinstance(bounded, BoundedStatistic):
            raise TypeError(f"only a BoundedStatistic can be released, got {type(bounded).__name__}")
        source = bounded._value
        if source.batch is not None and not batches:
            raise UnsupportedAccounting(
                "a statistic of a batch can be released by `gaussian` only, with the plan of its batch"
            )
        if source.unit is not None and source.unit != self.unit:
            raise ValueError(f"the statistic protects a {source.unit}, the session's unit is {self.unit!r}")
        if self.adjacency == "add-remove" and source.needs_public_n:
            raise ValueError(
                "under adjacency='add-remove' the number of records is private: "
                "make the PrivateRecords with n_public"
            )

    def noise(self, bounded: BoundedStatistic, plan: GaussianPlan | BatchPlan | BatchPart) -> grid.Noise:
        """The noise of a Gaussian release: computed once for one statistic and one plan."""
        last = self._noise
        if last is None or last[0]() is not bounded or last[1] is not plan:
            own = plan.plan if isinstance(plan, BatchPart) else plan
            extra = own.extra if isinstance(own, BatchPlan) else None
            grid_of = grid.gaussian_grid if extra is None else extra.grid
            made = grid_of(bounded, plan.noise_multiplier, self.adjacency)
            last = self._noise = (ref(bounded), plan, made)
        return last[2]

    def check_numerical_error(self, numerical_error: tuple[float, float], remedy: str = "") -> list[float]:
        """Refuse samplers' errors that the budget cannot hold; return the new sums.

        Parameters
        ----------
        remedy : str, default=""
            What else helps against a delta that is too large, with a comma and a space behind it.
        """
        epsilon, delta = self.numerical_error[0] + numerical_error[0], self.numerical_error[1] + numerical_error[1]
        if epsilon > self.epsilon_numerical_error:
            raise UnsupportedAccounting(
                f"epsilon={self.epsilon:g} is too small for so many noisy values: the proven error of "
                f"the sampler is {epsilon:.2g}; use a larger epsilon, or fewer features or steps"
            )
        if delta > self.delta_numerical_error:
            raise UnsupportedAccounting(
                f"epsilon={self.epsilon:g} leaves so little noise, or delta={self.delta:g} is so small, "
                f"that the sampler's cut tails (probability {min(1.0, delta):.2g}) are not negligible: use "
                f"a smaller epsilon (a few dozen at most), {remedy}a larger delta, or epsilon=inf for no privacy"
            )
        return [epsilon, delta]

    def charge_numerical_error(self, numerical_error: tuple[float, float]) -> None:
        """Add samplers' errors to the account."""
        if not all(0.0 <= part < math.inf for part in numerical_error):
            raise UnsupportedAccounting(
                f"numerical_error must be two finite numbers >= 0, got {numerical_error!r}"
            )
        self.numerical_error = self.check_numerical_error(numerical_error)

    def assume(self, line: str) -> None:
        """Add an assumption of the claim to the report, once."""
        if line not in self.assumptions:
            self.assumptions.append(line)

    def write(self, line: LedgerRow, purpose: str) -> None:
        """Add a release to the rows: one row for all that cost the same for the same purpose."""
        self.open_batch = None
        line = {"name": line.pop("name"), "purpose": purpose, "count": 1, **line}
        largest = release_type(line).largest_keys
        cost = tuple(item for item in line.items() if item[0] not in largest and item[0] != "count")
        known = self._by_cost.get(cost)
        if known is None:  # the row first: an interrupt may then cost a second row, and never one
            self.rows.append(line)
            self._by_cost[cost] = line
            return
        known["count"] = int(known["count"]) + int(line["count"])
        for key in largest:
            if key in line and line[key] != known[key]:
                known[key] = max(known[key], line[key], key=float)
