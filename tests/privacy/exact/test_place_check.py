"""The test that a row's numbers do not depend on its place."""

import numpy as np
import pytest

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import Outer, OuterSum, PrivateRecords, Vectors, check_places


def rowwise(X, y):
    return [
        Vectors(np.tanh(X)),
        Outer(X[:, :2], X[:, 1:]),
        OuterSum(X[:, :, None], (X * y[:, None]).astype(X.dtype)[:, :, None]),
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_a_row_alone_pass(dtype):
    check_places(rowwise, 3, dtype, targets=np.arange(64) % 10)
    check_places(lambda X, y: [Vectors(np.full_like(X, np.nan))], 3, dtype)


ULP = np.float64(1 + 2.0**-52)


@pytest.mark.parametrize(
    "function",
    [
        lambda X, y: [Vectors(X - X.mean(axis=0))],
        lambda X, y: [Vectors(X * (ULP if len(X) == 1 else 1.0))],
        lambda X, y: [Vectors(X * (ULP if len(X) == 33 else 1.0))],
        lambda X, y: [Vectors(X * np.where(np.arange(len(X)) == 63, ULP, 1.0)[:, None])],
        lambda X, y: [Outer(X, X * np.where(np.arange(len(X)) % 8 == 7, ULP, 1.0)[:, None])],
        lambda X, y: [
            Vectors(X * np.where(np.arange(len(X)) >= len(X) // 8 * 8, ULP, 1.0)[:, None])
        ],
        lambda X, y: [Vectors(X)] * (1 + (len(X) == 8)),
    ],
    ids=["mean", "one row", "33 rows", "last place", "every eighth", "tail", "more pieces"],
)
def test_a_function_whose_bits_move_is_refused_with_the_cure(function):
    with pytest.raises(UnsupportedAccounting, match="one-by-one"):
        check_places(function, 5)


def test_targets_must_fit():
    with pytest.raises(ValueError, match="targets"):
        check_places(rowwise, 3, targets=np.zeros(3))


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
