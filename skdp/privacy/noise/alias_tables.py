"""Alias tables with 191-bit thresholds for rounded Gaussian and discrete Laplace magnitudes.

A draw is a fair sign and a magnitude m = j W + r. The table gives the coarse bin j, the sampler
adds the offset r in [0, W) by rejection (W a power of two, W = 1 for small scales). Everything
here is computed in integers; no floating-point function enters a table.

Privacy
-------
Bin masses are integers that add up to exactly 2^191; Walker's alias method spreads them over 2^c cells of equal
mass 2^(191 - c). A draw takes the cell from the first c bits of a 64-bit word and compares the next 63 - c bits
with the first 63 - c bits of the cell's threshold; the last bit is the sign. On a tie, and only then, a second and
a third word are compared with the rest of the threshold. Bin j thus has probability mass_j / 2^191 *exactly*.

Gaussian: mass_j is proportional to the integral of the normal density from (j W - 1/2)/s to
((j + 1) W - 1/2)/s, j = 0 .. J - 1, with J W >= 13.25 s. For W > 1 this counts magnitude 0 with
both signs; the sampler rejects "minus zero" and starts again, which is exact. For W = 1 the mass
of j = 0 is halved instead, and both signs of zero are the same value.

* Cut-off: magnitudes beyond J W have mass below 2 Q(13.25) < 2^-129 and are not drawn.
* Integrals: bins are divided into strips of width at most s/256. In a strip with centre z (unit: s) and width h
  the integral is h phi(z) sum_n (h/2)^(2n) He_2n(z) / (2n + 1)!, because phi(z + u) = phi(z) sum_n He_n(z) (-u)^n
  / n! and odd terms vanish. For |z| <= 13.3, h <= 1/256 the terms beyond n = 14 add less than 2^-230. phi(z) at
  equidistant points is a product of two geometric recurrences. All in 320-bit fixed point: the absolute error is
  below 2^-290, and as no kept bin has a mass below 2^-138, the relative error is below 2^-150.
* Rounding of mass_j to multiples of 2^-191: relative error below 2^-191 / 2^-138 = 2^-53, and
  below 2^-58 within 13 s; the remainder of all roundings goes to bin 0.

Laplace: mass_j is proportional to q^j, q = exp(-W/t), J = 83.2 t/W (cut-off below 2^-119), with
the same rule for zero. Given j, r has probability proportional to exp(-r/t): no approximation.

The offsets and the total error are in ``skdp.privacy.noise.samplers``.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, factorial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CANONICAL_SIGMA = 2**30  # units of the grid; its table is shipped
TABLE_FILE = Path(__file__).parent / "data" / "rounded_gaussian_2p30.npz"

TOTAL_BITS = 191  # the masses of a table add up to 2^191
_FIXED_BITS = 320  # bits of fixed-point numbers
_ONE = 1 << _FIXED_BITS
_GAUSSIAN_TAIL = Fraction(53, 4)  # sigma beyond which a magnitude is not drawn
_STRIP = Fraction(1, 256)  # largest width of a strip, in sigma
_STRIP_TERMS = 15  # terms of the series of a strip
_LAPLACE_TAIL = Fraction(832, 10)  # scales beyond which a magnitude is not drawn
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class AliasTable:
    """An alias table: thresholds in three parts, aliases, and how bins become magnitudes.

    ``high`` holds the first 63 - ``cell_bits`` bits of each threshold, ``low`` (cells x 2) the rest; a bin is
    2^``offset_bits`` magnitudes wide; ``slope`` and ``curve`` give the acceptance of an offset.
    """

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    alias: NDArray[np.uint16]
    cell_bits: int
    offset_bits: int
    slope: float
    curve: float

    def __post_init__(self) -> None:
        for array in (self.high, self.low, self.alias):
            array.flags.writeable = False


def _exp_fixed(x: Fraction) -> int:
    """exp(-x), 0 <= x < 64, in fixed point: series of exp(x/64), squared six times, inverted."""
    reduced = (x.numerator << _FIXED_BITS) // (64 * x.denominator)
    term = total = _ONE
    n = 1
    while term:
        term = (term * reduced >> _FIXED_BITS) // n
        total += term
        n += 1
    for _ in range(6):
        total = total * total >> _FIXED_BITS
    return _ONE * _ONE // total


def _to_fixed(x: Fraction) -> int:
    return (x.numerator << _FIXED_BITS) // x.denominator


def _strip_coefficients(width: Fraction) -> list[int]:
    """Coefficients in z^2 of (integral over a strip with centre z) / (width phi(z))."""
    coefficients = [Fraction(0)] * _STRIP_TERMS
    for n in range(_STRIP_TERMS):
        scale = (width / 2) ** (2 * n) / factorial(2 * n + 1)
        for i in range(n + 1):
            hermite = Fraction(factorial(2 * n), factorial(n - i) * factorial(2 * i) * 2 ** (n - i))
            coefficients[i] += scale * hermite * (-1) ** (n - i)
    return [_to_fixed(c) for c in reversed(coefficients)]


def _strips(start: Fraction, width: Fraction, count: int) -> list[int]:
    """Integrals of the normal density over ``count`` strips, up to one common factor."""
    coefficients = _strip_coefficients(width)
    centre = start + width / 2
    density = _ONE
    ratio = _exp_fixed(centre * width + width**2 / 2)
    shrink = _exp_fixed(width**2)
    z, step = _to_fixed(centre), _to_fixed(width)
    integrals = []
    for _ in range(count):
        square = z * z >> _FIXED_BITS
        value = 0
        for c in coefficients:
            value = (value * square >> _FIXED_BITS) + c
        integrals.append(density * value >> _FIXED_BITS)
        density = density * ratio >> _FIXED_BITS
        ratio = ratio * shrink >> _FIXED_BITS
        z += step
    return integrals


def gaussian_masses(sigma: Fraction, offset_bits: int) -> list[int]:
    """Masses of the bins of |round(N(0, sigma^2))| (zero: see the module), up to one factor."""
    if offset_bits:
        width = (1 << offset_bits) / sigma
        return _strips(Fraction(-1, 2) / sigma, width, ceil(_GAUSSIAN_TAIL / width))
    half = ceil(1 / (2 * sigma * _STRIP))
    magnitudes = ceil(_GAUSSIAN_TAIL * sigma) + 1
    strips = _strips(Fraction(0), 1 / (2 * half * sigma), (2 * magnitudes - 1) * half)
    sums = [sum(strips[i : i + 2 * half]) for i in range(half, len(strips), 2 * half)]
    return [sum(strips[:half]), *sums]


def laplace_masses(scale: Fraction, offset_bits: int) -> list[int]:
    """Masses of the bins of the discrete Laplace magnitude, up to one factor."""
    width = (1 << offset_bits) / scale
    ratio = _exp_fixed(width)
    masses = [_ONE]
    for _ in range(ceil(_LAPLACE_TAIL / width)):
        masses.append(masses[-1] * ratio >> _FIXED_BITS)
    if not offset_bits:
        masses[0] //= 2
    return masses


def alias_cells(masses: list[int]) -> tuple[int, list[int], list[int]]:
    """Spread masses over 2^cell_bits equal cells: (cell_bits, thresholds, aliases).

    Walker's method in the form of Vose, in integers: cell i yields bin i with probability
    threshold_i / 2^(191 - cell_bits) and bin alias_i otherwise.
    """
    total = sum(masses)
    exact = [((m << (TOTAL_BITS + 1)) // total + 1) >> 1 for m in masses]
    exact[0] += (1 << TOTAL_BITS) - sum(exact)
    cell_bits = max(1, (len(exact) - 1).bit_length())
    cell = 1 << (TOTAL_BITS - cell_bits)
    rest = exact + [0] * ((1 << cell_bits) - len(exact))
    aliases = list(range(len(rest)))
    small = [i for i, mass in enumerate(rest) if mass < cell]
    large = [i for i, mass in enumerate(rest) if mass > cell]
    while small:
        i, j = small.pop(), large[-1]
        aliases[i] = j
        rest[j] -= cell - rest[i]
        if rest[j] <= cell:
            large.pop()
            if rest[j] < cell:
                small.append(j)
    return cell_bits, [0 if m == cell else m for m in rest], aliases


def bin_masses(table: AliasTable) -> list[int]:
    """Masses of the bins of a table, which add up to 2^191; the last ones may be 0."""
    cell = 1 << (TOTAL_BITS - table.cell_bits)
    masses = [0] * table.high.size
    for i, (high, low, alias) in enumerate(zip(table.high, table.low, table.alias, strict=True)):
        threshold = int(high) << 128 | int(low[0]) << 64 | int(low[1])
        masses[i] += threshold
        masses[int(alias)] += cell - threshold
    return masses


def _pack(masses: list[int], offset_bits: int, slope: Fraction, curve: Fraction) -> AliasTable:
    cell_bits, thresholds, aliases = alias_cells(masses)
    high = np.array([t >> 128 for t in thresholds], dtype=np.uint64)
    low = np.array([((t >> 64) & _WORD, t & _WORD) for t in thresholds], dtype=np.uint64)
    alias = np.array(aliases, dtype=np.uint16)
    return AliasTable(high, low, alias, cell_bits, offset_bits, float(slope), float(curve))


def _gaussian_shape(sigma: Fraction) -> tuple[int, Fraction, Fraction]:
    """Offset bits, and the slope and curve of the acceptance (see `skdp.privacy.noise.samplers`)."""
    offset_bits = 0 if sigma <= 512 else (int(sigma) >> 8).bit_length() - 1
    h2 = 1 / sigma**2
    slope = h2 * (Fraction(1, 2) - h2 / 24 + h2**2 / 720)
    return offset_bits, slope, h2**4 / 2880


def build_gaussian(sigma: float) -> AliasTable:
    """Build the table of |round(N(0, sigma^2))|."""
    exact = Fraction(sigma)
    offset_bits, slope, curve = _gaussian_shape(exact)
    return _pack(gaussian_masses(exact, offset_bits), offset_bits, slope, curve)


@lru_cache(maxsize=32)
def gaussian_table(sigma: float) -> AliasTable:
    """The table of ``sigma``: shipped for the canonical one, else built once per process."""
    if sigma != CANONICAL_SIGMA:
        return build_gaussian(sigma)
    offset_bits, slope, curve = _gaussian_shape(Fraction(sigma))
    with np.load(TABLE_FILE, allow_pickle=False) as file:
        high, low, alias = file["high"], file["low"], file["alias"]
    cell_bits = int(alias.size).bit_length() - 1
    return AliasTable(high, low, alias, cell_bits, offset_bits, float(slope), float(curve))


@lru_cache(maxsize=32)
def laplace_table(scale: float) -> AliasTable:
    """The table of the discrete Laplace magnitude of ``scale``, built once per process."""
    exact = Fraction(scale)
    offset_bits = 0 if exact <= 64 else (int(exact) >> 5).bit_length() - 1
    return _pack(laplace_masses(exact, offset_bits), offset_bits, 1 / exact, Fraction(0))
