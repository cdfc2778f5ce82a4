"""What a session adds for sums whose records are clipped by norms from random projections.

Two errors of samplers differ from those of other releases.

* *The noise.* It reaches 13.25 standard deviations. An output that is drawn on one data set can be drawn on the
  other if its noise, shifted by Z over the noise multiplier, is within reach. So what is missed is a mean over Z,
  and over the sampling of the record: without it both noises are the same.
* *The projections.* An entry of v_j is an integer over 2^30, drawn with a log-error below 2^-50; what cannot be
  drawn has a probability below 2^-100. The law of the v_j is the same on both data sets. A hockey-stick divergence
  is a mean over the v_j, so the error multiplies delta by at most exp(2^-50) for each entry, and adds nothing to
  epsilon. `gradient_sum` covers the rounding to 2^-30.
"""

import functools
import math

from scipy.special import erfc

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import noise
from skdp.privacy.batches import BatchPlan
from skdp.privacy.mechanisms.projected_gaussian.cost import mean_of_growing

__all__ = ["LEAST_PROJECTIONS", "check_projected", "projected_slack"]

# Below this number of projections few records with large gradients set epsilon, unless norms are capped.
LEAST_PROJECTIONS = 20
_REACH = 13.25  # of the noise, in standard deviations


def check_projected(adjacency: str, n_projections: int, norm_ratio: float) -> None:
    """Refuse what has no proof, or a cost that hardly any noise can pay."""
    if adjacency == "replace-one":
        raise UnsupportedAccounting(
            "clipping by projections has a proof under zero-out and add-remove only: under replace-one two norms "
            "are estimated from the same projections. Use adjacency='zero-out', or another clipping"
        )
    if n_projections < LEAST_PROJECTIONS and math.isinf(norm_ratio):
        raise UnsupportedAccounting(
            f"{n_projections} projections estimate a norm so badly that a large gradient may enter almost "
            f"unclipped: give n_projections of at least {LEAST_PROJECTIONS} (a BatchGroup may have a "
            "finite norm_ratio instead)"
        )


def projected_slack(plan: BatchPlan, size: int, delta: float) -> tuple[float, float]:
    """What the samplers' errors add to (epsilon, delta) of one release of ``size`` values.

    Parameters
    ----------
    plan : BatchPlan
        With projections.
    size : int
    delta : float
        Of the session.
    """
    drawn = plan.n_projections * size
    law = 1.001 * delta * math.expm1(drawn * noise.NOISE_LOG_ERROR) + drawn * noise.NOISE_CUTOFF
    epsilon, cutoff = noise.gaussian_slack(size)
    missed = _missed(size, plan.noise_multiplier, plan.n_projections, plan.norm_ratio)
    return epsilon, cutoff + law + plan.rate * missed


@functools.lru_cache(maxsize=64)
def _missed(size: int, noise_multiplier: float, n_projections: int, norm_ratio: float) -> float:
    """Mean over Z of the probability that the noise of a value is out of reach on the other data set."""
    return mean_of_growing(
        lambda z: (size * erfc((_REACH - z / noise_multiplier) / math.sqrt(2.0))).clip(0.0, 1.0),
        n_projections,
        norm_ratio,
    )
