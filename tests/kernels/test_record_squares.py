"""Squared norms of records, sums of Gram matrices, integers of a block; and BLAS on one thread."""

import math
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from skdp.kernels import add_rounded, gram_products, one_blas_thread, row_squares
from skdp.kernels.blas import _release


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 2, 7, 8, 33, 1000])
def test_squares_are_those_of_a_slow_sum(dtype, width):
    rng = np.random.default_rng(width)
    values = (rng.normal(size=(5, width)) * 10.0 ** rng.integers(-20, 18, (5, width))).astype(dtype)
    wanted = [math.fsum(float(v) ** 2 for v in row) for row in values]
    assert row_squares(values) == pytest.approx(wanted, rel=(width + 1) * 2.0**-53, abs=0)
    assert np.array_equal(row_squares(np.asfortranarray(values)), row_squares(values))


def test_a_row_has_the_same_bits_at_every_place():
    values = np.random.default_rng(0).normal(size=(64, 777)).astype(np.float32)
    whole = row_squares(values)
    for part in ([5], [5, 6, 7], range(63, -1, -1), range(1, 64)):
        assert np.array_equal(row_squares(values[list(part)]), whole[list(part)])


def test_what_is_not_finite_stays_in_its_row():
    values = np.ones((3, 20))
    values[1, 7] = np.nan
    values[2, 0] = np.inf
    assert np.array_equal(row_squares(values), [20.0, np.nan, np.inf], equal_nan=True)


@pytest.mark.parametrize("t", [1, 5, 33])
def test_gram_products_are_those_of_a_slow_sum(t):
    left, right = np.random.default_rng(t).normal(size=(2, 4, t, t))
    wanted = [math.fsum((a * b).ravel()) for a, b in zip(left, right)]
    assert gram_products(left, right) == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("kind", "large"), [(np.int64, 2**60), (np.float64, 2**50)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_block_is_rounded_in_float64(dtype, kind, large):
    block = np.array([0.5, 1.5, -2.5, 0.1, -3.7], dtype=dtype)
    total = np.array([1, 1, 1, large, -5], dtype=kind)
    add_rounded(total, block, 2.0**30 + 1)
    wanted = [round(float(v) * (2.0**30 + 1)) for v in block]
    assert total.tolist() == [w + t for w, t in zip(wanted, [1, 1, 1, large, -5])]


def threads():
    return {lib["num_threads"] for lib in ThreadpoolController().info() if lib["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    """BLAS with two threads, and no thread that alone may change that."""
    controller = ThreadpoolController().select(user_api="blas")
    applied = controller.limit(limits=2)
    _release()
    yield
    applied.restore_original_limits()
    _release()


@pytest.mark.usefixtures("two_threads")
def test_blas_has_one_thread_until_the_last_caller_has_left():
    entered, may_leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            entered.set()
            may_leave.wait(300)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        assert entered.wait(300)
    assert threads() == {1}
    may_leave.set()
    thread.join()
    assert threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_an_exception_takes_the_limit_back():
    def fail():
        with one_blas_thread():
            raise KeyError("inside")

    with pytest.raises(KeyError):
        fail()
    assert threads() == {2}
