"""How a sum of the owners' statistics is released: by which noise, and who draws it."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy import BoundedStatistic, PrivacySession, accounting, sum_of_owners

# The attributes of an engine for each kind of noise.
METHODS = {
    "gaussian": ("ready", "open", "numerical_error", "surplus"),
    "laplace": ("ready", "open_laplace", "laplace_numerical_error", "laplace_scales"),
}
NOISES = tuple(METHODS)

Release = Callable[[list[BoundedStatistic]], NDArray[np.float64]]


def make_release(session: PrivacySession, *, noise: str, releases: int, engine: Any) -> Release:
    """Plan equal releases, and return the function that makes one of them.

    Parameters
    ----------
    session : PrivacySession
    noise : {"gaussian", "laplace"}
    releases : int
        How many are planned; they share the whole budget.
    engine : object with the protocol of `skdp.privacy.session.engine.Engine`, or None
        None: the session adds the statistics and draws the noise, in this process.

    Returns
    -------
    callable
        From a list of statistics of different owners, always of one shape, to the noisy sum. An engine refuses, at
        the first call, openings that its samplers' proven errors do not allow to finish: nothing is opened or
        spent then.

    Notes
    -----
    **Privacy.** One unit changes one of the statistics, so the sum has the largest of their bounds
    (`skdp.privacy.sum_of_owners`). T Gaussian releases with multiplier z are exactly mu-GDP with
    ``mu = sqrt(T) / z``. Laplace noise is calibrated to the l1 norm: with delta = 0 the epsilons of the
    releases add up to the whole, with delta > 0 they share the budget's mu.
    """
    left = iter(range(releases, 0, -1))  # releases from here on, this one included
    plan = session.plan_gaussian(releases) if noise == "gaussian" else None
    epsilon = laplace_epsilon(session, releases) if plan is None else 0.0

    def release(statistics: list[BoundedStatistic]) -> NDArray[np.float64]:
        rest = next(left, 1)
        if engine is not None and not session.exact:
            if plan is not None:
                return session.gaussian_by_engine(statistics, plan, engine, releases=rest)
            return session.laplace_by_engine(statistics, epsilon, engine, purpose="steps", releases=rest)
        total = sum_of_owners(statistics)
        if plan is not None:
            return session.gaussian(total, plan)
        return session.laplace(total, epsilon, purpose="steps")

    return release


def laplace_epsilon(session: PrivacySession, releases: int) -> float:
    """Pure epsilon of each of some releases that share the session's budget."""
    if session.exact:
        return math.inf
    if session.delta > 0:
        return accounting.pure_epsilon(session.mu / math.sqrt(releases)) * (1 - 2.0**-40)
    return session.selection_epsilon(releases, 1.0)  # with delta = 0 a share of epsilon itself


@contextmanager
def opened_engine(engine: object, n_owners: int, releases: int) -> Iterator[object]:
    """The engine that the parameter ``engine`` names, open for one fit; None for "plain"."""
    if is_plain(engine):
        yield None
    elif isinstance(engine, str):
        from skdp.multiparty.engine.loopback import LoopbackEngine

        with LoopbackEngine(n_owners, rounds=releases) as made:  # noise does not depend on data
            yield made
    else:
        yield engine


def check_engine(engine: object, noise: str, delta: float) -> None:
    """Refuse an object that is no engine, or none for this noise."""
    if isinstance(engine, str):
        if engine not in ("plain", "mpyc"):
            raise ValueError(f"engine must be 'plain', 'mpyc' or an engine object, got {engine!r}")
    else:
        needed = ["name", *(METHODS[noise])]
        missing = [name for name in needed if not hasattr(engine, name)]
        if missing:
            raise TypeError(
                f"engine must be 'plain', 'mpyc' or an object with {', '.join(needed)}; "
                f"{type(engine).__name__} lacks {', '.join(missing)}"
            )
    if delta == 0 and noise == "laplace" and not is_plain(engine):
        raise ValueError(
            "delta=0 needs pure noise, but an engine's Laplace noise is made of finitely many bits: give "
            "delta > 0, for example 1e-6, or engine='plain'"
        )


def surplus_of(engine: Any, noise: str) -> float:
    """Standard deviation of the noise that the parameter ``engine`` draws over that which the claim counts."""
    if noise != "gaussian" or is_plain(engine):
        return 1.0
    if isinstance(engine, str):
        from skdp.multiparty.engine.loopback import LoopbackEngine

        return LoopbackEngine(1).surplus  # of as many servers as `opened_engine` starts
    return float(engine.surplus)


def is_plain(engine: object) -> bool:
    """Whether statistics are added and noise is drawn in this process."""
    return isinstance(engine, str) and engine == "plain"
