"""Compiled samplers over key-stream words, and the proof of their error. Loaded on first use.

Bins come from an exact alias table (``skdp.privacy.noise.alias_tables``). This module draws the offset r in [0, W)
of a magnitude m = n + r, n = j W.

Privacy
-------
Acceptance. r is uniform and is accepted with a(r) = exp(-d(r)), so P(r | j) = a(r) / sum(a).
Laplace: d = r / t, from the distribution. Gaussian (s > 512 only): with h = 1/s and
z = m h, the mass of m is h phi(z) M, M = E exp(-z h U - h^2 U^2 / 2), U uniform on [-1/2, 1/2], and

    log(phi(z) M) = const - z^2/2 + h^2 z^2/24 - h^4 (z^4/2880 + z^2/720) + R,

so d = (m^2 - n^2) (slope + curve (m^2 + n^2)) with slope = h^2 (1/2 - h^2/24 + h^4/720) and curve = h^8 / 2880.
The next terms of R are h^6 (z^6/181440 + c4 z^4 + c2 z^2), |c4|, |c2| < 1/5000 (their exact values are recomputed
in the tests); over a bin (W h <= 1/256, |z| <= 13.26) they change by less than h^6 * 22 / 256 < 2^-57. The rest
has order h^8: log M is analytic in (x, y) = (z^2 h^2, h^2) and bounded by 2.7 for |x| <= 16, |y| <= 1/2, where
|M - 1| <= 1.8135 e^(1/16) - 1 < 0.931; so by Cauchy's estimate the coefficient of x^a y^b is below
2.7 * 2^b / 16^a, and these terms change by less than 2^-60 over a bin.

Arithmetic. m - n and m + n are integers below 2^45, exact in float64; d <= 0.052 (Laplace: 1/32)
carries at most six roundings, and 1 - exp(-d) is Horner's rule of a polynomial whose truncation is
below 2^-60: its relative error is below 12 * 2^-53, so the relative error of a is below 0.052 * 12 * 2^-53 /
0.94 < 2^-53. The threshold 2^64 (1 - a) is cut to an integer (2^-64) and compared with 64 fresh bits: the bits
that the offset left in its word, then, on a tie, the bits of another word. Hence |log P(r | j) - truth| < 2
(2^-53 + 2^-57 + 2^-60) < 2^-51.8; with the table's 2^-53 and the restarts at "minus zero" (a factor common to all
values, off by less than 2^-53) every value's log-probability is within 2^-51 < 2^-50 of the truth.

Cut-off. A bin gets at most 30 attempts, the last one is taken as it is: probability below
0.052^30 < 2^-127. With the table's cut-off the total is below 2^-118 < 2^-100.

Stopping. A draw starts only if all words that it may need are there, and it is always finished, so the end of a
buffer does not depend on the value in progress.

Selection. The k largest of score_i + Gumbel(scale), in order, have the law of k draws without replacement with
weights exp(score_i / scale) (Plackett-Luce; Yellott 1977), so no Gumbel number is formed: a binary tree of weight
sums is descended k times, the chosen leaf is set to zero and its path summed again. With u = 2^-53: a weight
exp(-t), t = (max - score) / scale <= 128, carries 2 u t from the quotient and 4 u from the exponential, 260 u;
numerator and denominator 520 u. The choice between subtrees a, b is a Bernoulli draw of exactly the float64
a/(a + b) <= 1/2 (bits compared as far as needed), off by 2 u; sums of positive numbers over L levels by L u, once
along the path and once at the root. Together below (520 + 4 L) u < 2^-43 for L <= 50: the log-error of every
selection's conditional probability. Leaves with t > 128 get weight zero; the weights are computed anew, from the
largest remaining score, when the root falls below 2^-32, so what a selection misses has probability below n
e^-128 2^32 < 2^-100.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skdp.kernels import inner_jit, jit
from skdp.kernels.protocols import Floats, Integers

U64 = np.uint64
Words = NDArray[np.uint64]
Aliases = NDArray[np.uint16]

_ATTEMPTS = 30  # attempts of one bin; the last one is taken as it is
WORDS_PER_DRAW = 64  # more words than a draw can need
_TWO_64 = 18446744073709551616.0

_INVERSES = np.array([0.0, *(1.0 / np.arange(1.0, 13.0))])

_WINDOW = 128.0  # scales below the largest score, beyond which a weight is 0
_REBUILD_BELOW = 2.0**-32  # root below which the weights are computed anew
_LOG2_E = 1.4426950408889634
_LN2 = Fraction("0.69314718055994530941723212145817656807550013436025")
# 40 bits, so that a multiple up to 2^13 of it is exact; the remainder is added in a second step.
_LN2_HIGH = int(_LN2 * 2**40) / 2**40
_LN2_LOW = float(_LN2 - Fraction(_LN2_HIGH))
_HALVES = 2.0 ** -np.arange(200.0)


@jit
def break_tie(words: Words, w: int, cell: int, low: Words, alias: Aliases) -> tuple[int | np.int64, int]:
    """Bin of a word that equals the first part of its cell's threshold, and the next position."""
    for part in range(2):
        word = words[w]
        w += 1
        if word < low[cell, part]:
            return cell, w
        if word > low[cell, part]:
            break
    return np.int64(alias[cell]), w


@jit
def fill_plain(words: Words, high: Words, low: Words, alias: Aliases, cell_bits: int, out: Integers) -> int:
    """Signed values of a table with one magnitude per bin; returns how many of ``out`` are done."""
    shift = U64(64 - cell_bits)
    mask = (U64(1) << U64(63 - cell_bits)) - U64(1)
    w = 0
    for i in range(out.size):
        if w + 3 > words.size:
            return i
        word = words[w]
        w += 1
        cell = np.int64(word >> shift)
        rest = (word >> U64(1)) & mask
        threshold = high[cell]
        m = cell if rest < threshold else np.int64(alias[cell])
        if rest == threshold:
            m, w = break_tie(words, w, cell, low, alias)
        sign = np.int64(word & U64(1))
        out[i] = (m ^ -sign) + sign
    return out.size


@jit
def reject_threshold(d: float) -> np.uint64:
    """2^64 (1 - exp(-d)) as an integer, 0 <= d < 1/16."""
    value = 1.0
    for n in range(12, 1, -1):
        value = 1.0 - value * d * _INVERSES[n]
    return U64(value * d * _TWO_64)


@jit
def exponent(r: int, near: int, slope: float, curve: float, square: bool) -> float:
    """The exponent d of the acceptance of offset ``r`` in the bin that begins at ``near``."""
    if not square:
        return float(r) * slope
    n = float(near)
    m = float(near + r)
    return float(r) * (m + n) * (slope + curve * (m * m + n * n))


@inner_jit
def _accept(bits: np.uint64, word: np.uint64, d: float, offset_bits: int) -> bool:
    """Accept with probability exp(-d): ``bits`` and, on a tie, the first bits of ``word``."""
    reject = reject_threshold(d)
    first = reject >> U64(offset_bits)
    if bits != first:
        return bits > first
    rest = reject & ((U64(1) << U64(offset_bits)) - U64(1))
    return (word >> U64(64 - offset_bits)) >= rest


@jit
def draw_offset(
    words: Words, w: int, j: int, rules: tuple[int, float, float, np.int64, np.int64], square: bool
) -> tuple[int | np.int64, int]:
    """A magnitude in bin ``j``, and the next position; ``rules`` are for the offsets of a table."""
    offset_bits, slope, curve, quick, quick_step = rules
    rest_bits = U64(64 - offset_bits)
    near = j << offset_bits
    m: int | np.int64 = near
    for _ in range(_ATTEMPTS):
        second = words[w]
        w += 1
        r = np.int64(second >> rest_bits)
        m = near + r
        bits = second & ((U64(1) << rest_bits) - U64(1))
        if np.int64(bits) > quick + j * quick_step:
            break
        d = exponent(r, near, slope, curve, square)
        w += 1
        if _accept(bits, words[w - 1], d, offset_bits):
            break
    return m, w


@inner_jit
def _fill_eight(
    words: Words,
    w: int,
    high: Words,
    alias: Aliases,
    shift: np.uint64,
    mask: np.uint64,
    rest_bits: np.uint64,
    rest_mask: np.uint64,
    quick: np.int64,
    quick_step: np.int64,
    out: Integers,
    i: int,
) -> bool:
    """Eight values from sixteen words, without a branch; False if one of them needs a decision.

    Decisions are a tie with a threshold, an offset that is not accepted at once, and "minus zero".
    """
    needs = U64(0)
    offset_bits = U64(64) - rest_bits
    for c in range(8):
        word, second = words[w + 2 * c], words[w + 2 * c + 1]
        cell = word >> shift
        rest = (word >> U64(1)) & mask
        threshold = high[cell]
        # Both are below 2^63, so the sign of the difference tells which one is smaller.
        smaller = U64(0) - ((rest - threshold) >> U64(63))
        other = U64(alias[cell])
        j = other ^ ((cell ^ other) & smaller)
        m = np.int64((j << offset_bits) + (second >> rest_bits))
        bits = np.int64(second & rest_mask)
        sign = np.int64(word & U64(1))
        needs |= U64(rest == threshold)
        needs |= U64(bits <= quick + np.int64(j) * quick_step)
        needs |= U64(m == 0) & U64(sign)
        out[i + c] = (m ^ -sign) + sign
    return needs == U64(0)


@jit
def fill_offset(
    words: Words,
    high: Words,
    low: Words,
    alias: Aliases,
    cell_bits: int,
    offset_bits: int,
    slope: float,
    curve: float,
    square: bool,
    out: Integers,
) -> int | np.int64:
    """Signed values of a table with coarse bins; returns how many of ``out`` are done.

    ``square`` tells the Gaussian's exponent (in m^2 - n^2) from the Laplace's (in m - n).

    Nearly every value takes two words and no decision, so eight values are drawn at once, and drawn again one by
    one where any of them needs a decision. The values and the words are the same.
    """
    shift = U64(64 - cell_bits)
    mask = (U64(1) << U64(63 - cell_bits)) - U64(1)
    rest_bits = U64(64 - offset_bits)
    rest_mask = (U64(1) << rest_bits) - U64(1)
    quick, quick_step = quick_accept(offset_bits, slope, square)
    # No literals: `_fill_eight` would be compiled for literal types, and again for the types of later values.
    w: int = np.int64(0)  # type: ignore[assignment]
    i: int = np.int64(0)  # type: ignore[assignment]
    again: int = np.int64(0)  # type: ignore[assignment]
    while i < out.size:
        if i >= again and i + 8 <= out.size and w + 14 + WORDS_PER_DRAW <= words.size:
            if _fill_eight(words, w, high, alias, shift, mask, rest_bits, rest_mask, quick, quick_step, out, i):
                i += 8
                w += 16
                continue
            again = i + 8
        if w + WORDS_PER_DRAW > words.size:
            return i
        word = words[w]
        w += 1
        cell = np.int64(word >> shift)
        rest = (word >> U64(1)) & mask
        threshold = high[cell]
        j = cell if rest < threshold else np.int64(alias[cell])
        if rest == threshold:
            j, w = break_tie(words, w, cell, low, alias)
        m, w = draw_offset(words, w, j, (offset_bits, slope, curve, quick, quick_step), square)
        sign = np.int64(word & U64(1))
        if m == 0 and sign == 1:
            continue
        out[i] = (m ^ -sign) + sign
        i += 1
    return out.size


@jit
def quick_accept(offset_bits: int, slope: float, square: bool) -> tuple[np.int64, np.int64]:
    """(a, b): every offset in bin j whose spare bits exceed a + j b is accepted.

    1 - exp(-d) <= d, and d is at most (j + 1/2) 2 W^2 slope (1 + 2^-40) (Gaussian; ``curve`` adds
    less than 2^-26 of it, covered by j + 1) or W slope (Laplace); unit 2^-(64 - offset_bits).
    """
    width = float(np.int64(1) << offset_bits)
    unit = float(U64(1) << U64(64 - offset_bits))
    if square:
        step = np.int64(2.0 * width * width * slope * unit) + 1
        return step, step
    return np.int64(width * slope * unit) + 1, np.int64(0)


@jit
def exp_minus(t: float) -> float:
    """exp(-t) for 0 <= t <= 128 with a relative error below 4 * 2^-53."""
    k = np.int64(t * _LOG2_E + 0.5)
    r = (t - k * _LN2_HIGH) - k * _LN2_LOW
    value = 1.0
    for n in range(14, 0, -1):
        value = 1.0 - value * r / n
    return value * _HALVES[k]


@jit
def build_tree(scores: Integers, scale: float, gone: NDArray[np.bool_], tree: Floats) -> None:
    """Weights relative to the largest remaining score in the leaves, their sums above."""
    n = scores.size
    first = True
    top = np.int64(0)
    for i in range(n):
        if not gone[i] and (first or scores[i] > top):
            top = scores[i]
            first = False
    for i in range(n):
        # The difference of two int64 always fits uint64, and wrapping arithmetic gives it.
        t = float(U64(top) - U64(scores[i])) / scale
        tree[n + i] = 0.0 if gone[i] or not t <= _WINDOW else exp_minus(t)
    for i in range(n - 1, 0, -1):
        tree[i] = tree[2 * i] + tree[2 * i + 1]


@inner_jit
def draw_left(words: Words, w: int, left: float, right: float) -> tuple[bool, int]:
    """True with probability left / (left + right), and the next position."""
    p = min(left, right) / (left + right)
    hit = False
    while p > 0.0:
        p *= _TWO_64
        digit = U64(p)
        word = words[w]
        w += 1
        if word != digit:
            hit = word < digit
            break
        p -= float(digit)
    return hit == (left <= right), w


@jit
def select_top(
    words: Words,
    reserve: int,
    scores: Integers,
    scale: float,
    gone: NDArray[np.bool_],
    tree: Floats,
    done: int,
    out: Integers,
) -> int:
    """Select without replacement from position ``done``; returns how many of ``out`` are done.

    A selection starts only if ``reserve`` words are left, more than it can use.
    """
    n = scores.size
    w = 0
    while done < out.size and w + reserve <= words.size:
        if tree[1] < _REBUILD_BELOW:
            build_tree(scores, scale, gone, tree)
        node = 1
        while node < n:
            left, w = draw_left(words, w, tree[2 * node], tree[2 * node + 1])
            node = 2 * node if left else 2 * node + 1
        out[done] = node - n
        done += 1
        gone[node - n] = True
        tree[node] = 0.0
        node >>= 1
        while node > 0:
            tree[node] = tree[2 * node] + tree[2 * node + 1]
            node >>= 1
    return done
