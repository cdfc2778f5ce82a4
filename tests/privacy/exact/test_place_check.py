"""The test that a row's numbers do not depend on its place."""

import numpy as np
import pytest

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import Outer, OuterSum, Vectors, check_places


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
