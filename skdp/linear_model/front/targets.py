"""The range of the targets: a centre and a reach that cover nearly all of them, by noisy binary searches."""

import math

import numpy as np
from scipy.special import ndtri

from skdp.base.column_search import Beliefs, released_points
from skdp.linear_model.front.columns import HIGH, LOW, SUREST
from skdp.linear_model.front.shares import Shares, gaussian_mu
from skdp.privacy import GaussianPlan, PrivateRecords

__all__ = ["released_target_range"]

SHARE, LARGEST = 0.08, 0.5  # of mu^2; the largest where the units are few
ENOUGH = 45.0  # units times mu below which the share is larger
PARTS = (0.35, 0.35, 0.3)  # of the share: magnitude, centre, reach
QUESTIONS = (10, 10, 7)  # the first one counts zeros
COMMON = 0.1  # logarithm of the weight that a magnitude loses with each octave away from 1
CENTERS = np.linspace(-1.0, 1.0, 513)  # in magnitudes
REACHES = 2.0 ** np.arange(-9, 2.1, 0.5)  # in magnitudes
TAIL = 0.02  # least part of the targets beyond the point that is searched for
SEEN = 3.0  # standard deviations of a count that a tail must have to be seen
PURPOSE = "range of the targets"
# Searches around a centre: most of them, the share of each further one (of a given share a part of it), the reach
# over the magnitude at which a further one is made, and its magnitude over the last one.
PASSES, AGAIN, AGAIN_OF_GIVEN, NARROW, CLOSER = 3, 0.06, 0.15, 2.0**-5, 2.0**-6
KEY = 3.0  # standard deviations of normal targets that the reach covers
NEAR = 0.25  # of a magnitude: a centre that is nearer to 0 has a reach of as much at least


def released_target_range(
    shares: Shares, records: PrivateRecords, share: float | None = None
) -> tuple[float, float]:
    """Release centre and reach of the targets.

    The median of the magnitudes that are not 0 comes first, then the median of the targets, then a quantile of the
    distances from it, as far in the tail as its noise allows. The reach is what normal targets with this quantile
    would exceed at three standard deviations. Without an intercept the centre is 0. Targets that are far from 0
    and close to each other are searched for again around their centre, on a finer line.
    """
    session, n = shares.session, records.n_units
    mass = n * gaussian_mu(session.epsilon, session.delta)
    again = AGAIN if share is None else AGAIN_OF_GIVEN * share
    share = min(LARGEST, max(SHARE, (ENOUGH / mass) ** 2)) if share is None else share - 2 * again
    size = _magnitude(
        shares, records.of_targets(), shares.plan(PARTS[0] * share, PURPOSE, QUESTIONS[0])
    )
    center, parts = 0.0, (PARTS[1] * share, PARTS[2] * share)
    for _ in range(PASSES):
        targets = records.centered(center).of_targets()
        moved = _center(shares, targets, size, parts[0]) if records.fit_intercept else 0.0
        plan = shares.plan(parts[1], PURPOSE, QUESTIONS[2])
        noise = session.noise_std(targets.column_counts(0.0), plan) / math.sqrt(plan.releases)
        tail = min(0.5, max(TAIL, SEEN * noise / n))
        found = released_points(
            session, targets, plan, REACHES[:, None] * size, 1.0 - tail,
            centers=np.array([moved]), absolute=True, beliefs=Beliefs(SUREST, upper=0.6),
        )[0]  # fmt: skip
        center += moved
        if found > NARROW * size or noise > 0.05 * n or not records.fit_intercept:
            break
        # The targets are far from 0 and close to each other: once more, around the centre.
        size, parts = max(4.0 * float(found), CLOSER * size), (0.5 * again, 0.5 * again)
    reach = float(found / -ndtri(tail / 2)) * KEY
    if abs(moved) < NEAR * size:
        reach = max(reach, NEAR * size)
    return center, reach


def _center(shares: Shares, targets: PrivateRecords, size: float, share: float) -> float:
    """Release a point near the median of the targets, within ``size`` of 0."""
    plan = shares.plan(share, PURPOSE, QUESTIONS[1])
    line = CENTERS[:, None] * size
    return float(released_points(shares.session, targets, plan, line, beliefs=Beliefs(SUREST))[0])


def _magnitude(shares: Shares, targets: PrivateRecords, plan: GaussianPlan) -> float:
    """Release a power of two near the median magnitude of the targets that are not 0.

    The first question counts the zeros.
    """
    session, n = shares.session, targets.n_units
    zeros = targets.column_counts(0.0, 0.0, absolute=True)
    found = float(session.gaussian(zeros, plan)[0]) / n + 0.5
    level = 0.5 + 0.5 * min(max(found - 2.0 * session.noise_std(zeros, plan) / n, 0.0), 0.9)
    octaves = 2.0 ** np.arange(LOW, HIGH + 1, dtype=np.float64)[:, None]
    start = -COMMON * np.abs(np.log2(octaves))
    beliefs = Beliefs(SUREST, upper=0.6, start=start, questions=plan.releases - 1)
    size = released_points(
        session, targets, plan, octaves, level, centers=np.zeros(1), absolute=True, beliefs=beliefs
    )
    return float(size[0])
