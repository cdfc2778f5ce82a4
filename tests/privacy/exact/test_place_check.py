"""The test that a row's numbers do not depend on its place."""

import numpy as np
import pytest

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import Outer, OuterSum, PrivateRecords, Vectors, check_batch_independence

pytestmark = pytest.mark.blas


def rowwise(X, y):
    return [
        Vectors(np.tanh(X)),
        Outer(X[:, :2], X[:, 1:]),
        OuterSum(X[:, :, None], (X * y[:, None]).astype(X.dtype)[:, :, None]),
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_a_row_alone_pass(dtype):
    check_batch_independence(rowwise, 3, dtype, targets=np.arange(64) % 10)
    check_batch_independence(lambda X, y: [Vectors(np.full_like(X, np.nan))], 3, dtype)


ULP = np.float64(1 + 2.0**-52)


@pytest.mark.parametrize(
    "function",
    [
        lambda X, y: [Vectors(X - X.mean(axis=0))],
        lambda X, y: [Vectors(X * (ULP if len(X) == 1 else 1.0))],
        lambda X, y: [Vectors(X * (ULP if len(X) == 33 else 1.0))],
        lambda X, y: [Vectors(X * np.where(np.arange(len(X)) == 63, ULP, 1.0)[:, None])],
        lambda X, y: [Outer(X, X * np.where(np.arange(len(X)) % 8 == 7, ULP, 1.0)[:, None])],
        lambda X, y: [Vectors(X * np.where(np.arange(len(X)) >= len(X) // 8 * 8, ULP, 1.0)[:, None])],
        lambda X, y: [Vectors(X)] * (1 + (len(X) == 8)),
    ],
    ids=["mean", "one row", "33 rows", "last place", "every eighth", "tail", "more pieces"],
)
def test_a_function_whose_bits_move_is_refused_with_the_cure(function):
    with pytest.raises(UnsupportedAccounting, match="one-by-one"):
        check_batch_independence(function, 5)


def test_targets_must_fit():
    with pytest.raises(ValueError, match="targets"):
        check_batch_independence(rowwise, 3, targets=np.zeros(3))


class Loud(np.ndarray):
    """An array whose matrix products are a thousand times too large."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        found = getattr(ufunc, method)(*map(np.asarray, inputs), **options)
        return found * 1000 if ufunc is np.matmul else found


@pytest.mark.parametrize("kind", [Loud, np.ma.MaskedArray, np.matrix])
def test_a_piece_is_made_of_plain_arrays(kind):
    array = np.ones((2, 2))
    with pytest.raises(TypeError, match="no subclass"):
        Vectors(array.view(kind))
    with pytest.raises(TypeError, match="no subclass"):
        Outer(array, array.view(kind))
    with pytest.raises(TypeError, match="no subclass"):
        Vectors([[1.0]])


def test_a_subclass_of_a_piece_is_refused():
    class Changing(Vectors):
        """A piece that gives other numbers when they are added than when they were measured."""

    with pytest.raises(TypeError, match="list of pieces"):
        PrivateRecords(np.ones((2, 3))).gradient_sum(lambda X, y: [Changing(X)], 1.0, size=3)


def neighbours_times_zero(X, y):
    """Each row by itself, by a product with a diagonal matrix: 0 x NaN is NaN."""
    return [Vectors(sum(np.eye(len(X))[:, j : j + 1] * X[j] for j in range(len(X))))]


def counts_equal_rows(X, y):
    _, which, counts = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    return [Vectors(X * counts[which.ravel()][:, None])]


def raises_for_values(X, y):
    if np.isnan(X).any():
        raise ValueError(f"bad value in {X}")
    return [Vectors(X)]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (neighbours_times_zero, "where other rows hold nan"),
        (lambda X, y: [Vectors(X / max(8.0, np.abs(X).max()))], "where other rows hold"),
        (lambda X, y: [Vectors(X / np.fmax(8.0, np.fmax.reduce(X)))], "where other rows hold inf"),
        (lambda X, y: [Vectors(X * (1 + (X == 0).all(axis=1).any()))], "other rows hold 0"),
        (lambda X, y: [Vectors(X * (1 + (0 < abs(X)).all() * (abs(X) < 1e-9).any()))], "1e-40"),
        (lambda X, y: [Vectors(X * (1 + (10 < abs(X)).any() * (abs(X) < 1e5).all()))], "as large"),
        (counts_equal_rows, "other rows hold"),
        (raises_for_values, "raised ValueError where other rows hold nan"),
        (lambda X, y: [Vectors(X[~np.isnan(X).any(axis=1)])], "where other rows hold nan"),
    ],
    ids=["0 x", "max", "fmax", "zeros", "tiny", "large", "equal", "raises", "drops"],
)
def test_a_function_of_rare_neighbours_is_refused(function, words):
    with pytest.raises(UnsupportedAccounting, match=words):
        check_batch_independence(function, 5)


def test_a_function_that_remembers_is_refused():
    largest = [6.0]

    def running_maximum(X, y):
        found = Vectors(X / largest[0])
        largest[0] = np.fmax(largest[0], np.abs(X[np.isfinite(X)]).max())
        return [found]

    with pytest.raises(UnsupportedAccounting, match="changed"):
        check_batch_independence(running_maximum, 5)


def test_a_function_that_returns_its_work_array_again_is_refused():
    work = np.empty((64, 5))

    def function(X, y):
        return [Vectors(np.tanh(X, out=work[: len(X)]))]

    with pytest.raises(UnsupportedAccounting, match="Several threads"):
        check_batch_independence(function, 5)
