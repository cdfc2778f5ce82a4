"""A step of the heavy ball, with all that is done to each entry in one pass."""

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.numba_jit import jit
from skdp.kernels.protocols import Floats

_LARGEST = float(np.finfo(np.float32).max)


@jit
def momentum_step(
    theta: Floats, velocity: Floats, gradient: Floats, momentum: float, rate: float, single: NDArray[np.float32]
) -> bool:
    """Change ``velocity`` to ``momentum * velocity + gradient`` and ``theta`` by ``-rate * velocity``, in place.

    The results are rounded as by NumPy's operations, one after the other, whose passes over the memory are a good
    part of a step for nets of millions of parameters.

    Returns
    -------
    bool
        Whether all of ``theta`` are numbers of float32, which ``single`` then holds.
    """
    inside = True
    for k in range(theta.size):
        moved = momentum * velocity[k] + gradient[k]
        x = theta[k] - rate * moved
        velocity[k], theta[k], single[k] = moved, x, x
        inside &= -_LARGEST <= x <= _LARGEST
    return inside
