"""The account of a session: what was planned, what may be released, and the claim that follows.

Nothing here draws noise or reads a statistic. `PrivacySession` adds the releases.
"""

import math
import os
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import (
    PrivacyAccountingError,
    PrivacyBudgetExceeded,
    UnsupportedAccounting,
)
from skdp.privacy import accounting, noise
from skdp.privacy.accounting.sampled import WITHOUT_REPLACEMENT
from skdp.privacy.accounting.sparse_vector import NumericSparsePlan
from skdp.privacy.batches import BatchPlan
from skdp.privacy.bounded import Bounded
from skdp.privacy.report import PrivacyReport

__all__ = ["GaussianPlan", "SessionLedger", "check_number", "check_share"]

# What the sampler's proven error may add to the claim; the noise is calibrated to the rest.
_EPSILON_SLACK, _DELTA_SLACK = 1e-5, 1e-4
_COST_KEYS = ("name", "purpose", "noise_multiplier", "epsilon", "sampling", "sampling_rate")
_LARGEST = ("sensitivity", "grid", "noise_std", "threshold_scale", "query_scale")
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


def check_number(value: int, name: str) -> int:
    """`value` as an int >= 1."""
    if type(value) is bool or int(value) != value or value < 1:
        raise ValueError(f"{name} must be an int >= 1, got {value!r}")
    return int(value)


def check_share(share: float) -> float:
    """`share` as a float in (0, 1]."""
    if not 0 < share <= _SHARE_ROUNDING:
        raise ValueError(f"share must be in (0, 1], got {share!r}")
    return min(float(share), 1.0)


# What no look at the rows may settle: whether two rows are equal is private.
_ONCE = {
    "record": "each record appears once: resampling, oversampling or augmentation before fit multiplies "
    "what one person adds",
    "group": "all rows of one person carry one group: resampling, oversampling or augmentation before fit "
    "must not give a person's rows to other groups",
}


class SessionLedger:
    """Budget, plans and ledger of one session; the base of `PrivacySession`."""

    def __init__(
        self, epsilon: float, delta: float, adjacency: str, unit: str, estimator: str,
        set_aside: float = 0.0,
    ) -> None:  # fmt: skip
        self.epsilon, self.delta = epsilon, delta
        self._set_aside = float(set_aside)
        self.adjacency, self.unit = adjacency, unit
        self._estimator = estimator
        self._rows: list[dict[str, Any]] = []
        self._plans: list[GaussianPlan | NumericSparsePlan | BatchPlan] = []
        self._pure: list[tuple[float, int, float]] = []  # (epsilon, count, mu^2)
        self._slack = [0.0, 0.0]
        self._stream: noise.KeyStream | None = None
        self._seed: Any = None
        self._context = b""
        self._reservation: Any = None
        self._used: dict[int, int] = {}
        self._taken: dict[int, list[int]] = {}  # runs that each part of a plan took
        self._pid, self._closed, self._late = os.getpid(), False, False
        self._minibatches = self._sampled = False
        self._bits: tuple[int, NDArray[np.uint64]] | None = None  # to draw batches in
        self._lock = threading.RLock()
        self.exact = math.isinf(epsilon)
        self._mu2 = self._calibrate()

    def report(
        self,
        *,
        public: dict[str, Any] | None = None,
        assumptions: tuple[str, ...] = (),
        unproven: bool = False,
        **extra: Any,
    ) -> PrivacyReport:
        """Recheck the ledger and return the report of what the session cost.

        Parameters
        ----------
        public : dict, default=None
            Public quantities that the fit used.
        assumptions : tuple of str, default=()
            Besides the one that every report lists: each record, or each person's group, is there once.
        unproven : bool, default=False
            Of an exact session: the estimator added noise of its own that no valid proof supports.

        Returns
        -------
        PrivacyReport

        Raises
        ------
        PrivacyAccountingError
            If the ledger costs more than the claim: a bug in skdp.
        """
        with (
            self._lock
        ):  # a release of another thread is in the claim and in the rows, or in neither
            return self._report(public, assumptions, unproven, extra)

    def _report(
        self,
        public: dict[str, Any] | None,
        assumptions: tuple[str, ...],
        unproven: bool,
        extra: dict[str, Any],
    ) -> PrivacyReport:
        if unproven and not self.exact:
            raise ValueError("a session with a finite epsilon makes proven releases only")
        claim = math.inf if self.exact else self._claim()
        if not self.exact:
            self._recheck(claim)
        assumptions = (_ONCE[self.unit], *assumptions)
        if self._stream is not None and self._stream.seeded:
            assumptions += ("the seed is secret and never used for another fit: for testing only",)
        if self._sampled:
            extra["sampled_plan"] = self._sampled_plan()
        return PrivacyReport(
            epsilon=claim,
            delta=max(self.delta, self._slack[1]),
            adjacency=self.adjacency,
            unit=self.unit,
            guarantee="unproven" if unproven else "none" if self.exact else "proven",
            accountant="none" if self.exact else self._accountant_name(),
            noise="the method's own, without a proof"
            if unproven
            else "none"
            if self.exact
            else self._noise_name(),
            public=dict(public or {}),
            assumptions=list(assumptions),
            mechanisms=[] if self.exact else [dict(line) for line in self._rows],
            slack=tuple(self._slack),
            plan_mu=None if self.exact else self._claimed_mu(),
            estimator=self._estimator,
            **extra,
        )

    def _calibrate(self) -> float:
        if self.exact:
            return math.inf
        if self.delta == 0:
            return 0.0
        left = 1.0 - self._set_aside
        epsilon, delta = left * (self.epsilon - self._epsilon_slack), left * self._ideal_delta()
        mu = accounting.gaussian_mu(epsilon, delta)
        return mu * mu

    def _aside(self) -> tuple[float, float]:
        """What is set aside: (epsilon, delta) of an exact mechanism without mu."""
        if not self._set_aside:
            raise PrivacyBudgetExceeded(
                "nothing is set aside: open the session with set_aside, a share of (epsilon, delta)"
            )
        share = self._set_aside
        return share * (self.epsilon - self._epsilon_slack), share * self._ideal_delta()

    @property
    def _epsilon_slack(self) -> float:
        """Kept for the sampler's error: probabilities are off by at most exp(slack / 2) a side."""
        return min(self.epsilon * _EPSILON_SLACK, 1e-4)

    @property
    def _delta_slack(self) -> float:
        """Kept for the tails that the samplers cut off; with delta = 0 the report names it."""
        return self.delta * _DELTA_SLACK if self.delta > 0 else 2.0**-80

    def _ideal_delta(self) -> float:
        return self.delta * (1 - _DELTA_SLACK) * math.exp(-self._epsilon_slack)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this session is closed; open another one to release more")
        if self._pid != os.getpid():
            raise RuntimeError("a session belongs to the process that opened it; open another one")

    def _check(self, bounded: Bounded, *, batches: bool = False) -> None:
        self._check_open()
        if not isinstance(bounded, Bounded):
            raise TypeError(f"only a Bounded can be released, got {type(bounded).__name__}")
        source = bounded._value
        if source.batch is not None and not batches:
            raise UnsupportedAccounting(
                "a statistic of a batch can be released by `gaussian` only, with the plan of its batch"
            )
        if source.unit is not None and source.unit != self.unit:
            raise ValueError(
                f"the statistic protects a {source.unit}, the session's unit is {self.unit!r}"
            )
        if self.adjacency == "add-remove" and source.needs_public_n:
            raise ValueError(
                "under adjacency='add-remove' the number of records is private: "
                "make the PrivateRecords with n_public"
            )

    def _check_plan(self, plan: Any, releases: int) -> None:
        """Refuse a plan that is not one of this session's own, or is used up."""
        if not any(plan is own for own in self._plans):
            raise PrivacyBudgetExceeded("this plan belongs to another session, or is a copy")
        if self._used.get(id(plan), 0) >= releases:
            raise PrivacyBudgetExceeded(
                f"the plan holds {releases} releases and all are used; nothing was released"
            )

    def _use(self, plan: Any) -> None:
        self._used[id(plan)] = self._used.get(id(plan), 0) + 1

    def _key_stream(self) -> noise.KeyStream:
        if self._stream is None:
            self._stream = noise.KeyStream(self._seed, info=self._context)
        if self._reservation is not None:
            self._reservation.commit()
        return self._stream

    def _started(self) -> bool:
        return self._stream is not None

    def _planned_mu2(self) -> float:
        return sum(plan.share * self._mu2 for plan in self._plans) + sum(
            mu2 for _, _, mu2 in self._pure
        )

    def _admit(self, mu2: float) -> None:
        self._late = self._late or bool(self._rows)
        if self._planned_mu2() + mu2 > self._mu2 * _SHARE_ROUNDING:
            left = max(0.0, 1.0 - self._planned_mu2() / self._mu2)
            raise PrivacyBudgetExceeded(
                f"the session has {left:.4g} of its budget (mu^2) left, less than was asked for; "
                "nothing was released. Give the plans smaller shares"
            )

    def _admit_pure(self, epsilon: float, count: int, mu2: float) -> None:
        if self.delta > 0:
            self._admit(mu2)
        elif self._pure_epsilon() + count * epsilon > self.epsilon - self._epsilon_slack:
            raise PrivacyBudgetExceeded(
                f"{self._pure_epsilon():g} of epsilon={self.epsilon:g} is spent and {count} x "
                f"{epsilon:g} more does not fit (a part {_EPSILON_SLACK:g} is kept for the sampler); "
                "nothing was released"
            )
        self._late = self._late or bool(self._rows)
        if self._pure and self._pure[-1][0] == epsilon:  # a thousand equal releases are one entry
            _, before, paid = self._pure.pop()
            count, mu2 = count + before, mu2 + paid
        self._pure.append((float(epsilon), count, mu2))

    def _pure_epsilon(self) -> float:
        return math.fsum(e * c for e, c, _ in self._pure)

    def require_feasible(self, size: int, releases: int, share: float) -> None:
        """Refuse a plan whose sampling error the budget cannot hold, before anything is released.

        Parameters
        ----------
        size : int
            Number of values of one release.
        releases : int
        share : float
            Share of the session's mu^2 that the releases take together.

        Raises
        ------
        UnsupportedAccounting
            If the proven error of the sampler is more than the part of the budget that pays for it.
        """
        if not self.exact and self.delta > 0:
            multiplier = math.sqrt(releases / (share * self._mu2))
            self._check_slack(noise.gaussian_slack(size * releases, multiplier))

    def _check_slack(self, slack: tuple[float, float]) -> list[float]:
        epsilon, delta = (old + new for old, new in zip(self._slack, slack))
        if epsilon > self._epsilon_slack:
            raise UnsupportedAccounting(
                f"epsilon={self.epsilon:g} is too small for so many noisy values: the proven error of "
                f"the sampler is {epsilon:.2g}; use a larger epsilon, or fewer features or steps"
            )
        if delta > self._delta_slack:
            raise UnsupportedAccounting(
                f"epsilon={self.epsilon:g} leaves so little noise, or delta={self.delta:g} is so small, "
                f"that what the sampler's tails miss (probability {min(1.0, delta):.2g}) is not negligible: use "
                "a smaller epsilon (a few dozen at most), a larger delta, or epsilon=inf for no privacy"
            )
        return [epsilon, delta]

    def _charge_slack(self, slack: tuple[float, float]) -> None:
        self._slack = self._check_slack(slack)

    def _write(self, line: dict[str, Any], purpose: str) -> None:
        """Add a release to the ledger: one row for all that cost the same for the same purpose."""
        line = {"name": line.pop("name"), "purpose": purpose, "count": 1, **line}
        for known in self._rows:
            if all(known.get(key) == line.get(key) for key in _COST_KEYS):
                known["count"] += line["count"]
                for key in _LARGEST:
                    if key in line:
                        known[key] = max(known[key], line[key])
                return
        self._rows.append(line)

    def _claim(self) -> float:
        """Epsilon of everything that was planned, rounded up; never more than the budget."""
        # What was planned after a release may have been planned because of it: then only the whole
        # budget, which the filter holds, is a valid claim (REFEREE 4).
        if self._late or self._set_aside or self._sampled:
            return self.epsilon
        if self.delta == 0:
            return self._pure_epsilon() + self._slack[0]
        planned = self._planned_mu2()
        if planned >= self._mu2 * (1 - 1e-6):
            return self.epsilon
        if planned == 0:
            return 0.0
        epsilon = accounting.gaussian_epsilon(math.sqrt(planned), self._ideal_delta())
        return min(self.epsilon, epsilon + self._epsilon_slack)

    def _claimed_mu(self) -> float:
        """The mu of what is claimed; inf where a part was set aside, which has a point and no mu."""
        if self._set_aside:
            return math.inf
        if self._sampled:  # what the other releases may take, beside the sampled ones
            batches = sum(plan.share for plan in self._plans if isinstance(plan, BatchPlan))
            return math.sqrt(max(0.0, 1.0 - batches) * self._mu2)
        if not self._late:
            return math.sqrt(self._planned_mu2())
        return math.sqrt(self._mu2) if self.delta > 0 else accounting.pure_mu(self.epsilon)

    def _recheck(self, claim: float) -> None:
        if not self._rows:
            return
        pure = self.delta == 0
        ideal = 0.0 if pure else (self.delta - self._slack[1]) * math.exp(-self._slack[0])
        found = accounting.recheck_epsilon(self._rows, ideal, adjacency=self.adjacency)
        if found + self._slack[0] > claim * (1 + 1e-9):
            raise PrivacyAccountingError(
                f"the ledger costs epsilon={found + self._slack[0]:.9g} but {claim:.9g} was claimed; "
                "this is a bug in skdp, please report it. The result is discarded"
            )

    def _accountant_name(self) -> str:
        if self.delta == 0:
            return "basic composition of pure mechanisms"
        if self._set_aside:
            return "basic composition of (epsilon, delta)"
        if self._sampled:
            return self._sampled_accountant()
        gaussian = all(isinstance(plan, GaussianPlan | BatchPlan) for plan in self._plans)
        exact = gaussian and not self._pure
        return "exact Gaussian DP (Balle & Wang 2018)" if exact else "Gaussian DP composition"

    def _sampled_plan(self) -> list[dict[str, Any]] | None:
        """The planned rows of all batches, made or not; None without sampling."""
        if not self._sampled:
            return None
        return [plan.planned_row() for plan in self._plans if isinstance(plan, BatchPlan)]

    def _sampled_accountant(self) -> str:
        kinds = {plan.sampling for plan in self._plans if isinstance(plan, BatchPlan)}
        if WITHOUT_REPLACEMENT in kinds:
            return "Renyi DP of fixed-size batches (Wang, Balle & Kasiviswanathan 2019)"
        return "privacy loss distributions of Poisson batches (Zhu, Dong & Wang 2022)"

    def _noise_name(self) -> str:
        kinds = {
            "gaussian": "Gaussian rounded to the grid",
            "laplace": "discrete Laplace on the grid",
            "above_threshold": "discrete Laplace of a sparse vector, grid",
            "sampled_pure": "discrete Laplace on a fresh sample, grid",
            "gumbel_top_k": "Gumbel on integer scores, grid",
            "objective_perturbation": "Gaussian linear term, grid",
        }
        seen = {line["name"]: line["grid"] for line in self._rows}
        source = "OpenSSL ChaCha20"
        if self._stream is not None and self._stream.seeded:
            source += ", seeded: for testing only"
        return "; ".join([*(f"{kinds[name]} {grid:.2g}" for name, grid in seen.items()), source])
