"""Exponential-mechanism weights of +-G_q that follow integer sums G_q, in a tree of sums. Loaded on first use.

The candidates are 2q (score -G_q) and 2q + 1 (score +G_q). Leaf v holds exp(-(reference - score_v) / scale), 0
where the exponent exceeds 144. Every node is the sum of its children, so a tree in which only the paths above
changed leaves were summed again has the bits of a tree built from scratch. Eight children share a node: it is
the binary tree ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7)) whose two lower layers are not stored.

Privacy
-------
Reference. It is the largest score plus 24 scales when the tree is built, and the tree is built again with a new
one when a score exceeds it or the root falls below 2^-64: a rule on present scores and reference alone.

Error (u = 2^-53; compare `skdp.privacy.noise.samplers`). A weight exp(-t), t <= 144, carries 2 u t from the
quotient and 4 u from the exponential, less than 292 u; numerator and denominator 584 u. With 2 u of the Bernoulli
draws and 4 L u of the sums over L levels the log-error of a selection's probability is below (586 + 4 L) u <
2^-43 = 1024 u for L <= 100. Leaves with t > 144 get weight 0: beside a root of at least 2^-64 they have
probability below n e^-144 2^64 < n 2^-143 < 2^-100 for n <= 2^40. These are the two numbers that
`selection_numerical_error` charges.
"""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skdp.kernels import jit
from skdp.kernels.protocols import Floats, Integers
from skdp.privacy.noise.keystream import KeyStream
from skdp.privacy.noise.samplers import draw_left

U64 = np.uint64
Words = NDArray[np.uint64]

HEADROOM = 24.0  # scales of the reference above the largest score
_WINDOW = 144.0  # scales below the reference, beyond which a weight is 0
_REBUILD_BELOW = 2.0**-64  # root below which the tree is built again

_STEPS = 32  # tabulated powers of 2 between 1/2 and 1
_PER_STEP = Fraction("0.69314718055994530941723212145817656807550013436025") / _STEPS
_INVERSE_STEP = float(1 / _PER_STEP)
# 40 bits, so that a multiple up to 2^13 of it is exact; the remainder is taken off in a second step.
_STEP_HIGH = int(_PER_STEP * 2**45) / 2**45
_STEP_LOW = float(_PER_STEP - Fraction(_STEP_HIGH))
_HALVES = 2.0 ** -np.arange(256.0)


def _roots() -> Floats:
    """2^(-i / 32), rounded once."""
    with localcontext() as context:
        context.prec = 40
        return np.array([float(Decimal(2) ** (Decimal(-i) / _STEPS)) for i in range(_STEPS)])


_ROOTS = _roots()


@jit
def decay(t: float) -> float:
    """exp(-t) for 0 <= t <= 144 with a relative error below 4 * 2^-53."""
    n = np.int64(t * _INVERSE_STEP + 0.5)
    r = (t - n * _STEP_HIGH) - n * _STEP_LOW
    # |r| <= log(2) / 64: the series ends at r^7 / 7! < 2^-58.
    value = 1.0 - r * (1.0 / 6.0)
    value = 1.0 - r * (0.2 * value)
    value = 1.0 - r * (0.25 * value)
    value = 1.0 - r * ((1.0 / 3.0) * value)
    value = 1.0 - r * (0.5 * value)
    value = 1.0 - r * value
    return _ROOTS[n & 31] * value * _HALVES[n >> 5]


def layout(n: int) -> Integers:
    """Where the stored levels of a tree over n leaves begin, the leaves first, and where they end."""
    starts = [0]
    while True:
        n = (n + 7) // 8
        starts.append(starts[-1] + 8 * n)
        if n == 1:
            return np.array(starts, dtype=np.int64)


@jit
def _block(tree: Floats, at: int) -> float:
    """Sum of eight nodes from ``at`` on."""
    left = (tree[at] + tree[at + 1]) + (tree[at + 2] + tree[at + 3])
    return left + ((tree[at + 4] + tree[at + 5]) + (tree[at + 6] + tree[at + 7]))


@jit
def _weight(reference: int, score: int, scale: float) -> float:
    # The difference of two int64 always fits uint64, and wrapping arithmetic gives it.
    t = float(U64(reference) - U64(score)) / scale
    return decay(t) if t <= _WINDOW else 0.0


@jit
def _root(tree: Floats, starts: Integers) -> float:
    return _block(tree, starts[-1] - 8)


@jit
def _sweep(tree: Floats, starts: Integers) -> None:
    """Sum all levels above the leaves."""
    for level in range(starts.size - 2):
        above = starts[level + 1]
        for b in range((above - starts[level]) // 8):
            tree[above + b] = _block(tree, starts[level] + 8 * b)


@jit
def build(sums: Integers, scale: float, tree: Floats, starts: Integers) -> int | np.int64:
    """Build the tree with a new reference, which is returned."""
    top = np.int64(0)
    for q in range(sums.size):
        top = max(top, abs(sums[q]))
    reference = top + np.int64(min(HEADROOM * scale, 2.0**61))
    for q in range(sums.size):
        tree[2 * q] = _weight(reference, -sums[q], scale)
        tree[2 * q + 1] = _weight(reference, sums[q], scale)
    _sweep(tree, starts)
    return reference


@jit
def rebuild(sums: Integers, scale: float, reference: int, tree: Floats, starts: Integers) -> int | np.int64:
    """Build the tree from scratch with the reference that `update` would leave; returns it."""
    for q in range(sums.size):
        if abs(sums[q]) > reference:
            return build(sums, scale, tree, starts)
    for q in range(sums.size):
        tree[2 * q] = _weight(reference, -sums[q], scale)
        tree[2 * q + 1] = _weight(reference, sums[q], scale)
    _sweep(tree, starts)
    return build(sums, scale, tree, starts) if _root(tree, starts) < _REBUILD_BELOW else reference


@jit
def update(
    sums: Integers, n_outputs: int, touched: Integers, scale: float, reference: int, tree: Floats,
    starts: Integers, mark: NDArray[np.bool_], nodes: Integers,
) -> int | np.int64:  # fmt: skip
    """Follow the sums of the touched features; returns the reference, a new one if there had to be one.

    ``mark`` is false before and after, for every node above the leaves; ``nodes`` is workspace.
    """
    for j in touched:
        for q in range(j * n_outputs, (j + 1) * n_outputs):
            if abs(sums[q]) > reference:
                return build(sums, scale, tree, starts)
    found = 0
    for j in touched:
        for q in range(j * n_outputs, (j + 1) * n_outputs):
            tree[2 * q] = _weight(reference, -sums[q], scale)
            tree[2 * q + 1] = _weight(reference, sums[q], scale)
            if starts.size > 2:
                found = _note(starts[1] + (q >> 2), found, mark, nodes)
    for level in range(starts.size - 2):
        below, above = starts[level], starts[level + 1]
        last, found = found, 0
        for f in range(last):
            node = nodes[f]
            mark[node] = False
            tree[node] = _block(tree, below + 8 * (node - above))
            if level < starts.size - 3:
                found = _note(starts[level + 2] + ((node - above) >> 3), found, mark, nodes)
    if _root(tree, starts) < _REBUILD_BELOW:
        return build(sums, scale, tree, starts)
    return reference


@jit
def _note(node: int, found: int, mark: NDArray[np.bool_], nodes: Integers) -> int:
    if not mark[node]:
        mark[node] = True
        nodes[found] = node
        found += 1
    return found


@jit
def select(words: Words, tree: Floats, starts: Integers) -> int | np.int64:
    """Draw a leaf with probability proportional to its weight; -1 if there are too few words to be sure.

    A choice between two halves takes one word, on ties at most 18: a float64 has 1074 places.
    """
    w = 0
    at = np.int64(0)
    for level in range(starts.size - 2, -1, -1):
        at = starts[level] + 8 * at
        for half in (4, 2, 1):
            if w + 18 > words.size:
                return np.int64(-1)
            left, right = _half(tree, at, half), _half(tree, at + half, half)
            goes_left, w = draw_left(words, w, left, right)
            if not goes_left:
                at += half
        at -= starts[level]
    return at


@jit
def _half(tree: Floats, at: int, size: int) -> float:
    if size == 4:
        return (tree[at] + tree[at + 1]) + (tree[at + 2] + tree[at + 3])
    return tree[at] + tree[at + 1] if size == 2 else tree[at]


class WeightTree:
    """The tree of sums that change from draw to draw: brought up to date before each.

    Parameters
    ----------
    n_outputs : int
        Sums of each feature, which stand together.
    """

    def __init__(self, n_outputs: int) -> None:
        self._n_outputs = n_outputs
        self._scale = 0.0  # scale of the weights; 0: there is no tree
        # Features that changed since the tree was brought up to date, or that any may have.
        self._pending: list[Integers] = []
        self._all_pending = False
        self._stream: KeyStream | None = None
        self._spare = np.empty(0, dtype=np.uint64)

    def forget(self) -> None:
        """Build the tree from scratch at the next draw: all sums are new."""
        self._scale = 0.0

    def note(self, changed: list[Integers] | None) -> None:
        """Take down the features whose sums change before the next draw; None means that any may."""
        if changed is None:
            self._all_pending = True
        else:
            self._pending += changed

    def draw(self, sums: Integers, scale: float, stream: KeyStream) -> int:
        """Draw a candidate with the weights exp(score / scale) from the present sums."""
        if scale != self._scale:
            self._scale = scale
            self._levels = layout(2 * sums.size)
            self._tree = np.zeros(self._levels[-1])
            self._mark = np.zeros(self._levels[-1], dtype=np.bool_)
            self._nodes = np.empty(sums.size, dtype=np.int64)
            self._reference = build(sums, scale, self._tree, self._levels)
        elif self._all_pending:
            self._reference = rebuild(sums, scale, self._reference, self._tree, self._levels)
        else:
            for touched in self._pending:
                self._reference = update(
                    sums, self._n_outputs, touched, scale, self._reference, self._tree, self._levels,
                    self._mark, self._nodes,
                )  # fmt: skip
        self._pending, self._all_pending = [], False
        choices = 3 * (self._levels.size - 1)
        words = self._drawn(stream, choices + 36)
        chosen = int(select(words, self._tree, self._levels))
        if chosen < 0:  # after two ties: the same words again, and as many more as can be needed
            words = np.concatenate([words, stream.words(18 * choices)])
            chosen = int(select(words, self._tree, self._levels))
        return chosen

    def _drawn(self, stream: KeyStream, count: int) -> Words:
        """The next words, fetched for many steps at once; the rest is never used for another stream."""
        if stream is not self._stream or self._spare.size < count:
            self._stream, self._spare = stream, stream.words(64 * count)
        words, self._spare = self._spare[:count], self._spare[count:]
        return words
