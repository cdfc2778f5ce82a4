"""Compiled private selection among very many candidates of which few have a score other than 0.

The candidates without a score are one leaf of the tree of `skdp.privacy.noise.samplers`. It has the weight of one
of them times their number, which falls by one with each that is selected. Which of them they are is drawn
afterwards: given how many were selected, all subsets are equally likely.

Privacy
-------
A selection of that leaf and a uniform choice among those it stands for have the probability of a selection of one
candidate from a tree with a leaf for each. The selected set has the law of `gumbel_top_k` on all scores. The
weight of the leaf carries one rounding more than another weight: its log-error is below 261 * 2^-53, and every
selection's conditional probability has a log-error below (522 + 4 L) 2^-53 < 2^-43. A leaf with a weight of 0
stands for candidates that are left out, which `samplers` counts. Hence `selection_numerical_error` holds. The time
depends on the number of scores other than 0.
"""

import numpy as np
from numpy.typing import NDArray

from skdp.kernels import jit
from skdp.kernels.protocols import Floats, Integers
from skdp.privacy.noise.samplers import draw_left, exp_minus

U64 = np.uint64
Words = NDArray[np.uint64]

_WINDOW = 128.0  # scales below the largest score, beyond which a weight is 0
_REBUILD_BELOW = 2.0**-32  # root below which the weights are computed anew


@jit
def _build(scores: Integers, scale: float, gone: NDArray[np.bool_], others: int, tree: Floats) -> float:
    """Weights relative to the largest remaining score; returns the weight of one candidate of score 0."""
    m = scores.size
    first = others == 0
    top = np.int64(0)
    for i in range(m):
        if not gone[i] and (first or scores[i] > top):
            top = scores[i]
            first = False
    n = m + 1
    for i in range(m):
        t = float(U64(top) - U64(scores[i])) / scale
        tree[n + i] = 0.0 if gone[i] or not t <= _WINDOW else exp_minus(t)
    t = float(U64(top) - U64(0)) / scale
    one = 0.0 if others == 0 or not t <= _WINDOW else exp_minus(t)
    tree[n + m] = others * one
    for i in range(n - 1, 0, -1):
        tree[i] = tree[2 * i] + tree[2 * i + 1]
    return one


@jit
def select_sparse(
    words: Words, reserve: int, scores: Integers, scale: float, gone: NDArray[np.bool_],
    others: int, one: float, tree: Floats, done: int, k: int,
) -> tuple[int, int, float]:  # fmt: skip
    """Select up to ``k`` in all; returns how many are done, how many have score 0 and are left, and their weight.

    ``gone`` marks the selected scores. A selection starts only if ``reserve`` words are left.
    """
    n = scores.size + 1
    w = 0
    while done < k and w + reserve <= words.size:
        if tree[1] < _REBUILD_BELOW:
            one = _build(scores, scale, gone, others, tree)
        node = 1
        while node < n:
            left, w = draw_left(words, w, tree[2 * node], tree[2 * node + 1])
            node = 2 * node if left else 2 * node + 1
        if node == 2 * n - 1:
            others -= 1
            tree[node] = others * one
        else:
            gone[node - n] = True
            tree[node] = 0.0
        done += 1
        node >>= 1
        while node > 0:
            tree[node] = tree[2 * node] + tree[2 * node + 1]
            node >>= 1
    return done, others, one
