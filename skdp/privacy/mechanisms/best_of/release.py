"""The best of a random number of private trials, as the one release of a session."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from skdp._compat import no_warnings_of_any_library
from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy.log import no_log_lines
from skdp.privacy.mechanisms.best_of.calibration import approximate_base, gaussian_base, trial_error
from skdp.privacy.mechanisms.best_of.cost import BestOf
from skdp.privacy.mechanisms.best_of.noise import TRIALS_ERROR, draw_trial_count, tie_break
from skdp.privacy.mechanisms.best_of.trials import TrialCount
from skdp.privacy.session.base import SessionBase

T = TypeVar("T")


@dataclass(frozen=True)
class BestOfPlan:
    """The cost of the trials of a session; made by a session only.

    Attributes
    ----------
    trials : TrialCount
        The law of their number.
    base_epsilon, base_delta : float
        The largest claim of the fit, and of the score, of one trial, on disjoint parts of the records.
    base_mu : float or None
        The mu of both. None where a trial may be anything that is (base_epsilon, base_delta)-DP.
    delta : float
        Of the released trial, without what its draw is off by.
    """

    trials: TrialCount
    base_epsilon: float
    base_delta: float
    base_mu: float | None
    delta: float


class BestOfTrials(SessionBase):
    """The best of a random number of trials."""

    def plan_best_of(self, mean_trials: float, *, shape: int = 1, gaussian: bool = True) -> BestOfPlan:
        """Divide the whole budget: the cost of one trial, if the best of a random number of them is released.

        Parameters
        ----------
        mean_trials : float
            Expected number of trials, above 1.
        shape : {0, 1}, default=1
            Of the law of their number: 1 is geometric, 0 logarithmic.
        gaussian : bool, default=True
            Whether fit and score of every trial are mu-GDP. False needs no mu, and leaves less for a trial.

        Returns
        -------
        BestOfPlan

        Raises
        ------
        UnsupportedAccounting
            If the session was not opened with ``best_of=True``, or has another plan, or has delta=0.
        """
        with self._lock:
            self._check_open()
            ledger, trials = self._ledger, TrialCount(mean_trials, shape)
            if not ledger.best_of:
                raise UnsupportedAccounting("open the session with best_of=True to plan trials")
            if ledger.plans or ledger.rows:
                raise UnsupportedAccounting("trials take the whole budget of a session")
            if ledger.exact:
                plan = BestOfPlan(trials, math.inf, ledger.delta, math.inf, ledger.delta)
            else:
                off = _draw_error(ledger.epsilon)
                ledger.check_numerical_error((0.0, off))
                delta = ledger.delta - off
                if gaussian:
                    mu, base = gaussian_base(trials, ledger.epsilon, delta)
                    plan = BestOfPlan(trials, base, delta, mu, delta)
                else:
                    base, part = approximate_base(trials, ledger.epsilon, delta)
                    plan = BestOfPlan(trials, base, part, None, delta)
            ledger.best_of_plan = plan
            return plan

    def best_of(self, plan: BestOfPlan, trial: Callable[[], tuple[float, T]], *, purpose: str = "search") -> T:
        """Make a random number of trials and release the result of the one with the best score.

        Parameters
        ----------
        plan : BestOfPlan
            Of this session, not used yet.
        trial : callable () -> (float, object)
            One trial: its score, larger is better, and the object to release if it is the best. It must cost what
            the plan says, charge no accountant, and keep nothing. Its random choices come from this session or
            from keys of their own, so that the trials are independent and have one law. One that raises an
            Exception, or has a score of NaN, has no result and the worst score.
        purpose : str, default="search"
            Written to the report.

        Returns
        -------
        object

        Raises
        ------
        PrivacyBudgetExceeded
            If the plan is used up. Nothing was drawn or released.
        RuntimeError
            If every trial failed. That is a result of the search, and stays charged.

        Notes
        -----
        **Privacy.** `best_of.bound` has the proof. It holds only if the number of trials is secret: log lines and
        warnings are off while trials run, their exceptions are dropped, and the row of the ledger does not say how
        many there were. The time shows it.
        """
        with self._lock:
            self._check_open()
            ledger = self._ledger
            if plan is not ledger.best_of_plan:
                raise PrivacyBudgetExceeded("this plan belongs to another session, or is a copy")
            if ledger.best_of_used:
                raise PrivacyBudgetExceeded("the trials of this session were made; nothing was released")
            ledger.best_of_used = True
            stream = self._keys.commit()
            if not ledger.exact:
                ledger.charge_numerical_error((0.0, _draw_error(ledger.epsilon)))
                # First the row: an interrupted release stays charged.
                ledger.write(_row(plan, ledger.epsilon).describe(), purpose)
            best: tuple[tuple[float, int, int], T | None] | None = None
            for _ in range(draw_trial_count(stream, plan.trials)):
                score, found = _attempt(trial)
                key = (score, *tie_break(stream))
                if best is None or key > best[0]:
                    best = key, found
            result = None if best is None else best[1]
        if result is None:
            raise RuntimeError(
                "every trial of the search failed; the budget is spent. To see why, fit one candidate on data "
                "without privacy needs, for example on random numbers of the same shape"
            )
        return result


def _attempt(trial: Callable[[], tuple[float, T]]) -> tuple[float, T | None]:
    """One trial, of which only the result is seen; a failed one has no result and the worst score."""
    with no_log_lines(), no_warnings_of_any_library(), np.errstate(all="ignore"):
        try:
            score, found = trial()
            if not math.isnan(score):
                return float(score), found
        except Exception:  # the error, and that there was one, may depend on the records
            pass
    return -math.inf, None


def _row(plan: BestOfPlan, epsilon: float) -> BestOf:
    error = (0.0, 0.0)  # the claim of a trial without mu includes the error of its noise
    if plan.base_mu is not None:
        error = trial_error(plan.base_epsilon, plan.base_delta)
    return BestOf(
        epsilon=epsilon, delta=plan.delta, mean_trials=plan.trials.mean, shape=plan.trials.shape,
        base_epsilon=plan.base_epsilon, base_delta=plan.base_delta, base_mu=plan.base_mu,
        log_error=error[0], tail=error[1],
    )  # fmt: skip


def _draw_error(epsilon: float) -> float:
    """The part of delta for draws of the number of trials and of their order, on both data sets."""
    return (1.0 + math.exp(min(epsilon, 600.0))) * TRIALS_ERROR
