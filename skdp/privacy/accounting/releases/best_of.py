"""The best of a random number of private trials, as a release."""

from dataclasses import dataclass

from skdp.privacy.accounting.releases.base import Release, register

__all__ = ["BestOf"]


@register
@dataclass(frozen=True, kw_only=True)
class BestOf(Release):
    """The best of K trials, (``epsilon``, ``delta``)-DP, of which nothing else leaves.

    K has the law `skdp.privacy.accounting.trials.TrialCount` of ``mean_trials`` and ``shape``. A trial fits on one
    part of the records and scores on another, each at (``base_epsilon``, ``base_delta``), ``base_mu``-GDP where it
    is given. ``log_error`` and ``tail`` bound how far the drawn noise of a trial is from exact noise.

    Privacy
    -------
    `skdp.privacy.accounting.best_of` has the bound. It gives one point of a curve and no mu, so the release is
    added to others by basic composition.
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
