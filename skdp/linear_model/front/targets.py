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
QUESTIONS = (10, 9, 7)  # the first one counts zeros
COMMON = 0.1  # logarithm of the weight that a magnitude loses with each octave away from 1
CENTERS = np.linspace(-1.0, 1.0, 513)  # in magnitudes
REACHES = 2.0 ** np.arange(-9, 2.1, 0.5)  # in magnitudes
TAIL = 0.02  # least part of the targets beyond the point that is searched for
SEEN = 3.0  # standard deviations of a count that a tail must have to be seen
KEY = 3.0  # standard deviations of normal targets that the reach covers
NEAR = 0.25  # of a magnitude: a centre that is nearer to 0 has a reach of as much at least


def released_target_range(
    shares: Shares, records: PrivateRecords, share: float | None = None
) -> tuple[float, float]:
    """Release centre and reach of the targets.

    The median of the magnitudes that are not 0 comes first, then the median of the targets, then a quantile of the
    distances from it, as far in the tail as its noise allows. The reach is what normal targets with this quantile
    would exceed at three standard deviations. Without an intercept the centre is 0.
    """
    session, n = shares.session, records.n_units
    mass = n * gaussian_mu(session.epsilon, session.delta)
    share = share or min(LARGEST, max(SHARE, (ENOUGH / mass) ** 2))
    targets = records.of_targets()
    first, second, third = (
        shares.plan(share * part, "range of the targets", questions)
        for part, questions in zip(PARTS, QUESTIONS)
    )
    size = _magnitude(shares, targets, first)
    center = np.zeros(1)
    if records.fit_intercept:
        line = CENTERS[:, None] * size
        center = released_points(session, targets, second, line, beliefs=Beliefs(SUREST))
    noise = session.noise_std(targets.column_counts(0.0), third) / math.sqrt(third.releases)
    tail = min(0.5, max(TAIL, SEEN * noise / n))
    grid = REACHES[:, None] * size
    found = released_points(
        session, targets, third, grid, 1.0 - tail, centers=center, absolute=True,
        beliefs=Beliefs(SUREST, upper=0.6),
    )[0]  # fmt: skip
    reach = float(found / -ndtri(tail / 2)) * KEY
    if abs(center[0]) < NEAR * size:
        reach = max(reach, NEAR * size)
    return float(center[0]), reach


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
