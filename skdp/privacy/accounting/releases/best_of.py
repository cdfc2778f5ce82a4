"""The best of a random number of private trials, as a release."""

import math
from dataclasses import dataclass

from skdp.privacy.accounting.best_of import best_of_gaussian
from skdp.privacy.accounting.best_of_pairs import best_of_approximate
from skdp.privacy.accounting.releases.base import Release, register
from skdp.privacy.accounting.roots import last_safe
from skdp.privacy.accounting.trials import TrialCount

__all__ = ["BestOf"]

_MOST = 1000.0  # no claim is as large as this
_WIDTH = 1e-7  # relative, of the bracket that is left


@register
@dataclass(frozen=True, kw_only=True)
class BestOf(Release):
    """The best of K trials, (``epsilon``, ``delta``)-DP, of which nothing else leaves.

    K has the law `skdp.privacy.accounting.trials.TrialCount` of ``mean_trials`` and ``shape``. A trial fits on one
    part of the records and scores on another, each at (``base_epsilon``, ``base_delta``), ``base_mu``-GDP where it
    is given. ``log_error`` and ``tail`` bound how far the drawn noise of a trial is from exact noise.

    Privacy
    -------
    `skdp.privacy.accounting.best_of` has the bound. It gives a curve and no mu, so the release is added to
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
        """Delta of one release at another epsilon: the bound holds for all of them."""
        trials = TrialCount(self.mean_trials, self.shape)
        if self.base_mu is None:
            return best_of_approximate(trials, self.base_epsilon, self.base_delta, epsilon)
        error = (self.log_error, self.tail)
        return best_of_gaussian(trials, self.base_mu, epsilon, error)

    def epsilon_at(self, delta: float) -> float:
        """Smallest epsilon of one release at another delta; inf where errors of the noise leave none."""
        high = self.epsilon
        while self.delta_at(high) > delta:
            high *= 2.0
            if high > _MOST:
                return math.inf
        return last_safe(lambda e: self.delta_at(e) - delta, high, 0.0, _WIDTH * high)
