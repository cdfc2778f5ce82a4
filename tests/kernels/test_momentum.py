"""The fused step of the heavy ball against NumPy's operations, to the last bit."""

import numpy as np
import pytest

from skdp.kernels import momentum_step

SIZES = (0, 1, 7, 1000)


def numbers(n, rng):
    """Normal numbers of all sizes, zeros of both signs and denormals."""
    found = rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, n)
    found[rng.random(n) < 0.1] = 0.0
    found[rng.random(n) < 0.1] = -0.0
    found[rng.random(n) < 0.1] = 5e-324
    return found


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_it_is_numpy_to_the_last_bit(size, momentum):
    rng = np.random.default_rng(0)
    theta, velocity, gradient = (numbers(size, rng) for _ in range(3))
    moved = momentum * velocity + gradient
    wanted = theta - 0.3 * moved
    single = np.empty(size, dtype=np.float32)
    assert momentum_step(theta, velocity, gradient, momentum, 0.3, single)
    for found, right in ((velocity, moved), (theta, wanted), (single, wanted.astype(np.float32))):
        assert found.tobytes() == right.tobytes()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1.7e308, -3.5e38])
@pytest.mark.parametrize("place", [0, 500, 999])
def test_what_is_no_number_of_float32_is_said(wrong, place):
    theta, gradient = np.ones(1000), np.zeros(1000)
    single = np.empty(1000, dtype=np.float32)
    assert momentum_step(theta.copy(), np.zeros(1000), gradient, 0.9, 1.0, single)
    gradient[place] = wrong
    assert not momentum_step(theta.copy(), np.zeros(1000), gradient, 0.9, 1.0, single)
