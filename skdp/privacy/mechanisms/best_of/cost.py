"""The best of a random number of private trials, as a release."""

import math
from dataclasses import dataclass

from skdp.privacy.accounting.releases import Line, Release
from skdp.privacy.accounting.roots import last_safe
from skdp.privacy.accounting.text import cost_text
from skdp.privacy.mechanisms.best_of.bound import best_of_gaussian
from skdp.privacy.mechanisms.best_of.pairs import best_of_approximate
from skdp.privacy.mechanisms.best_of.trials import TrialCount

_MAX_CLAIM = 1000.0  # no claim is as large as this
_WIDTH = 1e-7  # relative width of the bracket at which bisection ends


@dataclass(frozen=True, kw_only=True)
class BestOf(Release):
    """The best of K trials, (``epsilon``, ``delta``)-DP, of which nothing else leaves.

    K has the law `best_of.trials.TrialCount` of ``mean_trials`` and ``shape``. A trial fits on one
    part of the records and scores on another, each at (``base_epsilon``, ``base_delta``), ``base_mu``-GDP where it
    is given. ``log_error`` and ``tail`` bound the distance of a trial's drawn noise from exact noise.

    Privacy
    -------
    `skdp.privacy.mechanisms.best_of.bound` has the bound. It gives a curve and no mu, so the release is added to
    others by basic composition.
    """

    name = "best_of"
    parameter_name = "base_epsilon"
    parameter_label = "base epsilon"
    noise = "that of the fit and the score of a trial"

    epsilon: float
    delta: float
    mean_trials: float
    shape: int
    base_epsilon: float
    base_delta: float
    base_mu: float | None = None
    log_error: float = 0.0
    tail: float = 0.0

    def mu(self) -> float:
        return 0.0 if self.count == 0 else super().mu()

    def delta_at(self, epsilon: float) -> float:
        trials = TrialCount(self.mean_trials, self.shape)
        if self.base_mu is None:
            return best_of_approximate(trials, self.base_epsilon, self.base_delta, epsilon)
        error = (self.log_error, self.tail)
        return best_of_gaussian(trials, self.base_mu, epsilon, error)

    def epsilon_at(self, delta: float) -> float:
        high = self.epsilon
        while self.delta_at(high) > delta:
            high *= 2.0
            if high > _MAX_CLAIM:
                return math.inf
        return last_safe(lambda e: self.delta_at(e) - delta, high, 0.0, _WIDTH * high)

    def lines(self, unit: str) -> list[Line]:
        law = "geometric" if self.shape else "logarithmic"
        known = "" if self.base_mu is None else f", mu {self.base_mu:.6g}"
        base = f"({cost_text(self.base_epsilon)}, {cost_text(self.base_delta)})"
        return [
            ("search", f"best of a random number of trials ({law}, mean {self.mean_trials:.6g})"),
            (
                "trial",
                f"a fit and a score cost {base} each{known}, on disjoint parts of the {unit}s; the search has no "
                "mu",
            ),
        ]


RELEASE = BestOf
