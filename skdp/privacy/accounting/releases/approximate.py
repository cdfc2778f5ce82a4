"""Releases that are (epsilon, delta)-DP at one point only."""

from dataclasses import dataclass

from skdp.privacy.accounting.releases.base import Release, register

__all__ = ["ObjectivePerturbation"]


@register
@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation(Release):
    """The minimiser of an objective with a random linear term, (``epsilon``, ``delta``)-DP.

    Privacy
    -------
    `skdp.privacy.accounting.objective` has the theorem and its constants. It gives one point of a curve and
    no mu, so the release is added to the others by basic composition (Dwork et al. 2006).
    """

    name = "objective_perturbation"
    noise = "Gaussian linear term, grid"

    epsilon: float
    delta: float | None = None
    noise_std: float | None = None
    penalty: float | None = None
    curvature: float | None = None
    trade: float | None = None
    one_signed: bool | None = None
    replaced: bool | None = None

    def mu(self) -> float:
        return 0.0 if self.count == 0 else super().mu()
