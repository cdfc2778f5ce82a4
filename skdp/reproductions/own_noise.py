"""Every owner adds the whole noise to its messages: nobody has to be trusted, and m times the noise is added up.

Privacy
-------
Owner j sends s_j + noise_j. The noise is calibrated to the largest change of s_j by one unit, its own sensitivity
D_j, for the whole budget. A unit is with one owner. Given all earlier messages, the other owners' messages do not
depend on it, and whoever sees all messages of all owners sees one owner's T releases of the planned cost, and
nothing else of the unit: costs of different owners do not add up (parallel composition).

The model is a function of the sum of the messages. Its noise is drawn here in two parts: the session releases the
sum with the noise of an owner of the largest sensitivity, max_j D_j, and the noise of the other owners is added to
the released sum. Their sum has the law of the sum of all owners' noise. The second part is independent of the
data, so it is a post-processing: the claim does not rest on it, and neither does the generator that draws it.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skdp.multiparty.release import Release, laplace_epsilon, make_release
from skdp.privacy import BoundedStatistic, PrivacySession, factor

BLOCK = 1 << 20  # Laplace values that are held at once


def release_with_own_noise(
    session: PrivacySession, ratios: Sequence[float], *, noise: str, releases: int
) -> Release:
    """Plan equal releases of the sum of messages which owners make noisy by themselves.

    Parameters
    ----------
    session : PrivacySession
    ratios : sequence of float
        Sensitivity of every owner's message over the largest one: public, in (0, 1], one of them 1.
    noise : {"gaussian", "laplace"}
    releases : int
        How many are planned; they share the whole budget.

    Returns
    -------
    callable
        From a list of statistics of different owners to the noisy sum.
    """
    release = make_release(session, noise=noise, releases=releases, engine=None)
    if session.exact:
        return release
    others = np.sort(np.asarray(ratios, dtype=np.float64))[:-1]  # the largest is the session's
    rng = generator(session)
    if noise == "gaussian":
        wide = math.sqrt(releases) / session.mu * math.sqrt(math.fsum(others**2))

        def added(statistics: Sequence[BoundedStatistic]) -> NDArray[np.float64]:
            return wide * moved(session, statistics, "l2") * rng.normal(size=statistics[0].shape)

    else:
        epsilon = laplace_epsilon(session, releases)

        def added(statistics: Sequence[BoundedStatistic]) -> NDArray[np.float64]:
            scale = moved(session, statistics, "l1") / epsilon
            return scale * laplace_sum(others, statistics[0].shape, rng)

    def noisy(statistics: list[BoundedStatistic]) -> NDArray[np.float64]:
        return release(statistics) + added(statistics)

    return noisy


def moved(session: PrivacySession, statistics: Sequence[BoundedStatistic], norm: str) -> float:
    """The largest sensitivity over the owners, in the l1 or the l2 norm."""
    largest = max(float(getattr(statistic, norm)) for statistic in statistics)
    return largest * (factor(session.adjacency) if statistics[0].adjacency is None else 1.0)


def laplace_sum(
    scales: NDArray[np.float64], shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Sum of independent Laplace noise of these scales, in every entry."""
    total, size = np.zeros(math.prod(shape)), math.prod(shape)
    step = max(1, BLOCK // size)
    for start in range(0, len(scales), step):
        part = scales[start : start + step]
        total += part @ rng.laplace(size=(len(part), size))
    return total.reshape(shape)


def generator(session: PrivacySession) -> np.random.Generator:
    """A generator for noise that no claim rests on, from the session's own key stream.

    A seeded fit is repeated exactly; an unseeded one never.
    """
    return np.random.default_rng(session.integers(2**62, 4).tolist())
