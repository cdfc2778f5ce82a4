"""The range of the targets: a centre and a reach that cover nearly all of them, from released histograms."""

import math

import numpy as np

from skdp.linear_model.front.octaves import HIGH, LOW, posterior_of_tops
from skdp.linear_model.front.shares import Shares, gaussian_mu
from skdp.linear_model.front.windows import LAST, NARROW, narrowed, released_spread
from skdp.privacy import PrivateRecords

__all__ = ["released_target_range"]

SHARE, LARGEST = 0.06, 0.5  # of mu^2; the largest where the units are few
ENOUGH = 30.0  # units times mu from which on the share grows as they get fewer
PARTS = (0.4, 0.6)  # of the share: octaves, window
LOOK, LARGEST_LOOK, LEAST_LOOK = 28.0, 0.3, 1e-4  # units of noise in a look; of the share; of mu^2
TOP = 0.9  # quantile of the highest octave
KEY = 2.5  # standard deviations that the reach covers
ATOM = (
    4.0  # evidence above which targets have an atom, such as many zeros: they keep the first window
)
PATIENT = 0.1  # part of the share that a look may cost to be taken once more
AGAIN = 2  # last histograms that may be repeated in a narrower window
SURELY = 5.5
PURPOSE = "range of the targets"


def released_target_range(
    shares: Shares, records: PrivateRecords, share: float | None = None
) -> tuple[float, float, int]:
    """Release centre and reach of the targets, and the number of their highest octave.

    Counts by octaves of the magnitude come first. Then histograms around 0, narrowed until the targets fill the
    window, and a last one with more of the budget. The centre is the posterior mean, the reach 2.5 standard
    deviations. Without an intercept the centre is 0, and nothing is narrowed.
    """
    session, n = shares.session, records.n_units
    mass = n * gaussian_mu(session.epsilon, session.delta)
    if share is None:
        share = min(LARGEST, max(SHARE, (ENOUGH / mass) ** 2))
    targets = records.of_targets()
    counted = targets.magnitude_counts(LOW, HIGH, adjacency=session.adjacency)
    plan = shares.plan(PARTS[0] * share, PURPOSE)
    counts = session.gaussian(counted, plan)
    noise = max(session.noise_std(counted, plan), 0.25)
    known, _ = posterior_of_tops(counts, noise, n)
    top = min(int((np.cumsum(known[0]) < TOP).sum()), HIGH - LOW)
    top = max([top, *np.flatnonzero(counts[0] > SURELY * noise)])
    center, reach, last = np.zeros(1), np.array([2.0 ** (LOW + top)]), PARTS[1] * share
    if records.fit_intercept:
        look = max(LEAST_LOOK, min(LARGEST_LOOK * share, (LOOK / mass) ** 2))
        windows = narrowed(
            shares, targets, reach, look, 0.5 * shares.left, PURPOSE, ATOM, look < PATIENT * share
        )
        if windows.columns.size:
            center, reach = windows.center, windows.reach
        last = max(last - look, 0.5 * last)
    found = released_spread(shares, targets, last, center, reach, PURPOSE)
    for _ in range(AGAIN * (records.fit_intercept and bool(windows.columns.size))):
        if found.deviation > NARROW * reach or shares.left < 0.5:
            break
        center, reach = found.center, LAST * found.deviation
        found = released_spread(shares, targets, last, center, reach, PURPOSE)
    middle, deviation = float(found.center[0]), float(found.deviation[0])
    if not records.fit_intercept:
        return 0.0, KEY * math.hypot(middle, deviation), top
    return middle, KEY * deviation, top
