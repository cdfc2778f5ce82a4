"""Laplacian smoothing: the exact solution of (I - s L) y = x, L the periodic 1-d Laplacian.

The matrix is (I - r S)(I - r S^T) / (1 - r)^2 with the cyclic shift S and the root 0 < r < 1 of
s r^2 - (1 + 2 s) r + s = 0, so two passes of z_i = r z_{i-1} + (1 - r) x_i solve it, one forward, one
backward. A pass forgets where it began by a factor r a step: begun early enough, it is exact to the last
bit at every place, the ends of the circle included, and blocks and lanes do not wait for each other.
"""

import itertools
import math
import numbers
from typing import Any

import numpy as np
import scipy.fft
from numpy.lib.array_utils import normalize_axis_index

from skdp.kernels._dispatch import is_cupy
from skdp.kernels._inputs import frozen
from skdp.kernels._jit import jit
from skdp.kernels._threads import n_threads, run_blocks

__all__ = ["laplacian_smooth", "smooth_by_fft"]

# What a pass still remembers of a false start: 2^-60 of the largest entry.
FORGOTTEN = 60 * math.log(2)
# Beyond this smoothing 1 - r is so small that rounding of r shows, and a pass is slow to forget.
LARGEST_RECURSIVE = 1e3
# Larger entries are scaled down before an FFT.
HUGE = 2.0**800
# Entries of a block: of one line in four lanes (not a power of two: the lanes would share cache sets), of
# columns beside each other.
LINE_BLOCK, COLUMN_BLOCK = 30_000, 65_000
# From WIDE columns on they go row by row, TILE of them at once; fewer go four at a time, and fewer than
# FEW one at a time where they are long.
WIDE, TILE, FEW = 16, 64, 4


@jit
def _up(states, x, out, r, g):
    """The forward pass of four lanes; returns their last states.

    Four at once, because one alone waits for its own last result at every step. Two may be the same.
    """
    z0, z1, z2, z3 = states
    x0, x1, x2, x3 = x
    out0, out1, out2, out3 = out
    for i in range(x0.size):
        z0 = r * z0 + g * x0[i]
        z1 = r * z1 + g * x1[i]
        z2 = r * z2 + g * x2[i]
        z3 = r * z3 + g * x3[i]
        out0[i] = z0
        out1[i] = z1
        out2[i] = z2
        out3[i] = z3
    return z0, z1, z2, z3


@jit
def _down(states, x, r, g):
    """The backward pass of four lanes, in place; an unsigned index saves the checks of its sign."""
    z0, z1, z2, z3 = states
    x0, x1, x2, x3 = x
    i = np.uint64(x0.size)
    while i > 0:
        i = i - np.uint64(1)
        z0 = r * z0 + g * x0[i]
        z1 = r * z1 + g * x1[i]
        z2 = r * z2 + g * x2[i]
        z3 = r * z3 + g * x3[i]
        x0[i] = z0
        x1[i] = z1
        x2[i] = z2
        x3[i] = z3
    return z0, z1, z2, z3


@jit
def _around(x, start, count):
    """Entries of a circle from ``start`` on, which may lie outside, in float64."""
    out = np.empty(count)
    j = start % x.size
    for i in range(count):
        out[i] = x[j]
        j = j + 1 if j + 1 < x.size else 0
    return out


@jit
def _four(x, heads, tails, out, r, g):
    """Both passes over four lanes with what precedes and follows them; tells which are finite."""
    start = (0.0, 0.0, 0.0, 0.0)
    states = _up(start, heads, heads, r, g)
    states = _up(states, x, out, r, g)
    states = _up(states, tails, tails, r, g)
    back = _down(start, tails, r, g)
    _down(back, out, r, g)
    # What is not finite stays so to the end of the pass.
    z0, z1, z2, z3 = states
    return np.isfinite(z0), np.isfinite(z1), np.isfinite(z2), np.isfinite(z3)


@jit
def _line(x, out, lo, hi, r, g, warm):
    """Rows lo to hi of one line, in four lanes; False if one that was read is not finite."""
    n = (hi - lo) // 4
    a, b, c, e = lo, lo + n, lo + 2 * n, lo + 3 * n
    lanes = (x[a:b], x[b:c], x[c:e], x[e : e + n])
    kept = (out[a:b], out[b:c], out[c:e], out[e : e + n])
    heads = (
        _around(x, a - warm, warm), _around(x, b - warm, warm),
        _around(x, c - warm, warm), _around(x, e - warm, warm),
    )  # fmt: skip
    # Up to three rows are left over: they are the beginning of the last lane's tail.
    tails = (
        _around(x, b, warm + 3), _around(x, c, warm + 3),
        _around(x, e, warm + 3), _around(x, e + n, warm + 3),
    )  # fmt: skip
    finite = _four(lanes, heads, tails, kept, r, g)
    last = tails[3]
    for i in range(e + n, hi):
        out[i] = last[i - e - n]
    return finite[0] and finite[1] and finite[2] and finite[3]


@jit
def _narrow(x, out, lo, hi, first, last, r, g, warm, finite):
    """Rows lo to hi of the columns first to last, four columns at a time."""
    for k in range(first, last, 4):
        a, b, c, e = k, min(k + 1, last - 1), min(k + 2, last - 1), min(k + 3, last - 1)
        lanes = (x[lo:hi, a], x[lo:hi, b], x[lo:hi, c], x[lo:hi, e])
        kept = (out[lo:hi, a], out[lo:hi, b], out[lo:hi, c], out[lo:hi, e])
        heads = (
            _around(x[:, a], lo - warm, warm), _around(x[:, b], lo - warm, warm),
            _around(x[:, c], lo - warm, warm), _around(x[:, e], lo - warm, warm),
        )  # fmt: skip
        tails = (
            _around(x[:, a], hi, warm), _around(x[:, b], hi, warm),
            _around(x[:, c], hi, warm), _around(x[:, e], hi, warm),
        )  # fmt: skip
        good = _four(lanes, heads, tails, kept, r, g)
        finite[a] &= good[0]
        finite[b] &= good[1]
        finite[c] &= good[2]
        finite[e] &= good[3]


@jit
def _wide(x, out, lo, hi, first, last, r, g, warm, finite):
    """Rows lo to hi of the columns first to last, row by row."""
    d = x.shape[0]
    z = np.zeros(last - first)
    tail = np.empty((warm, z.size))
    for i in range(lo - warm, lo):
        row = x[i % d, first:last]
        for k in range(z.size):
            z[k] = r * z[k] + g * row[k]
    for i in range(lo, hi):
        row, kept = x[i, first:last], out[i, first:last]
        for k in range(z.size):
            z[k] = r * z[k] + g * row[k]
            kept[k] = z[k]
    for i in range(warm):
        row, kept = x[(hi + i) % d, first:last], tail[i]
        for k in range(z.size):
            z[k] = r * z[k] + g * row[k]
            kept[k] = z[k]
    for k in range(z.size):
        finite[first + k] &= np.isfinite(z[k])
        z[k] = 0.0
    for i in range(warm - 1, -1, -1):
        kept = tail[i]
        for k in range(z.size):
            z[k] = r * z[k] + g * kept[k]
    for i in range(hi - 1, lo - 1, -1):
        kept = out[i, first:last]
        for k in range(z.size):
            z[k] = r * z[k] + g * kept[k]
            kept[k] = z[k]


def _root(smoothing: float) -> tuple[float, float, int]:
    """r, 1 - r and the steps after which a pass has forgotten its start."""
    g = 2.0 / (1.0 + 2.0 * math.sqrt(smoothing + 0.25))
    r = smoothing * g * g
    if r >= 0.5:
        # Exact, so that the two weights add up to one and the mean stays.
        g = 1.0 - r
    return r, g, math.ceil(FORGOTTEN / -math.log(r))


def _bounds(length: int, block: int) -> list[tuple[int, int]]:
    """Equal parts of about ``block``; they depend on nothing else."""
    parts = round(length / block)
    if parts <= 1:
        return [(0, length)]
    cuts = [length * part // parts for part in range(parts + 1)]
    return list(itertools.pairwise(cuts))


def _by_lines(x: Any, root: tuple[float, float, int]) -> Any:
    """Each line of an array of shape (lines, d, columns) by itself."""
    out = np.empty_like(x)
    lines, d, columns = x.shape
    cuts = _bounds(d, max(LINE_BLOCK, 16 * root[2]))
    broken = []

    def block(_: int, number: int) -> None:
        line, part = divmod(number, len(cuts))
        row, column = divmod(line, columns)
        if not _line(x[row, :, column], out[row, :, column], *cuts[part], *root):
            broken.append((row, column))

    blocks = lines * columns * len(cuts)
    if blocks == 1:
        # Handing out a single block costs a tenth of the time of a line of 10,000.
        block(0, 0)
    else:
        run_blocks(block, blocks, work=4 * x.size)
    for row, column in broken:
        out[row, :, column] = np.nan
    return out


def _by_columns(x: Any, root: tuple[float, float, int]) -> Any:
    """The columns of an array of shape (lines, d, columns) beside each other."""
    out = np.empty_like(x)
    lines, d, columns = x.shape
    kernel = _wide if columns >= WIDE else _narrow
    tiles = _bounds(columns, TILE)
    rows = _bounds(d, max(COLUMN_BLOCK // min(columns, TILE), 8 * root[2]))
    finite = np.ones((lines, columns), dtype=bool)

    def block(_: int, number: int) -> None:
        rest, part = divmod(number, len(rows))
        line, tile = divmod(rest, len(tiles))
        kernel(x[line], out[line], *rows[part], *tiles[tile], *root, finite[line])

    run_blocks(block, lines * len(tiles) * len(rows), work=4 * x.size)
    if not finite.all():
        out.swapaxes(1, 2)[~finite] = np.nan
    return out


def smooth_by_fft(xp: Any, fft: Any, x: Any, smoothing: float, **options: Any) -> Any:
    """Divide the spectrum along axis 1 by the eigenvalues; ``xp`` is NumPy or CuPy."""
    d = x.shape[1]
    scaled, size, finite = x.astype(xp.float64, copy=False), 1.0, None
    if not float(xp.abs(x).max()) < HUGE:
        largest = xp.abs(scaled).max(axis=1, keepdims=True)
        finite = xp.isfinite(largest)
        # A power of two, so that sums over the line do not overflow and nothing is rounded.
        size = xp.where(finite & (largest >= HUGE), HUGE, 1.0)
        scaled = xp.where(finite, scaled / size, 0.0)
    sine = xp.sin(xp.arange(d // 2 + 1) * (math.pi / d))
    # Everything divided by 4: 4 s may overflow.
    inverse = 0.25 / (0.25 + smoothing * sine**2)
    spectrum = fft.rfft(scaled, axis=1, **options)
    spectrum *= inverse[:, None]
    smooth = fft.irfft(spectrum, d, axis=1, **options)
    if finite is not None:
        smooth = xp.where(finite, smooth * size, xp.nan)
    return smooth.astype(x.dtype, copy=False)


def _smooth(x: Any, smoothing: float) -> Any:
    """Along axis 1 of a contiguous array of three dimensions, with smoothing > 0."""
    lines, d, columns = x.shape
    recursive = smoothing <= LARGEST_RECURSIVE
    if recursive:
        root = _root(smoothing)
        warm = root[2]
        short = d < 4 * warm
        # Before and behind a line each pass runs in for `warm` rows, however short the line.
        recursive = not (short and lines > 1) and warm <= max(d, 1024)
    if not recursive:
        return smooth_by_fft(np, scipy.fft, x, smoothing, workers=n_threads())
    return (_by_columns if short or columns >= FEW else _by_lines)(frozen(x), root)


def _check_smoothing(smoothing: Any) -> float:
    if not isinstance(smoothing, numbers.Real):
        raise TypeError(f"smoothing must be a number, got {type(smoothing).__name__}.")
    smoothing = float(smoothing)
    if not 0.0 <= smoothing < math.inf:
        raise ValueError(f"smoothing must be finite and at least 0, got {smoothing}.")
    return smoothing


def laplacian_smooth(x: Any, smoothing: float, axis: int = 0) -> Any:
    """Solve ``(I - s L) y = x`` along an axis, L the periodic one-dimensional Laplacian.

    The matrix is circulant with first row ``(1 + 2 s, -s, 0, ..., 0, -s)``; for every length d its
    eigenvalues are ``1 + 2 s - 2 s cos(2 pi i / d)``, i = 0, ..., d - 1. They are at least 1, so the
    norm never grows; the sum of the entries stays. A linear map of what is already private: as
    post-processing it costs no privacy, and it must not be counted on to lower a sensitivity.

    Parameters
    ----------
    x : array_like of real numbers, any shape of at least one dimension
        Never written to. float32 and float64 keep their type (float32 is computed in float64 and stored
        in float32 between the passes: relative to the largest entry, errors are near 1e-7); integers and
        other real types become float64. CuPy arrays stay on the device.
    smoothing : float
        s >= 0, finite. With 0 the result is a copy.
    axis : int, default=0
        Axis along which to smooth; every line along it is a system of its own.

    Returns
    -------
    ndarray
        New array of the shape of x. A line that holds NaN or an infinity becomes NaN, every entry of it
        (with ``smoothing=0`` it is copied).

    Raises
    ------
    ValueError
        If smoothing is negative, infinite or NaN, or x has no dimension.
    TypeError
        If x is not an array of real numbers, or smoothing not a number.
    numpy.exceptions.AxisError
        If x has no such axis.

    Notes
    -----
    Two recursive passes in O(d) operations up to s = 1000, a real FFT beyond and for many short lines.
    The error, relative to the largest entry, is near 1e-15 in float64 and below 1e-14 for every s. The
    result does not depend on the number of threads.

    References
    ----------
    S. Osher, B. Wang, P. Yin, X. Luo, F. Barekat, M. Pham and A. Lin, "Laplacian smoothing gradient
    descent", Research in the Mathematical Sciences 9 (2022).

    B. Wang, Q. Gu, M. Boedihardjo, L. Wang, F. Barekat and S. J. Osher, "DP-LSSGD: a stochastic
    optimization method to lift the utility in privacy-preserving ERM", MSML (2020).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.kernels import laplacian_smooth
    >>> y = laplacian_smooth([0.0, 0.0, 8.0, 0.0], 1.0)
    >>> y.round(3).tolist()
    [1.067, 1.6, 3.733, 1.6]
    >>> np.allclose(3.0 * y - np.roll(y, 1) - np.roll(y, -1), [0.0, 0.0, 8.0, 0.0])
    True
    """
    smoothing = _check_smoothing(smoothing)
    if is_cupy(x):
        from skdp.kernels._gpu_smooth import gpu_laplacian_smooth

        return gpu_laplacian_smooth(x, smoothing, axis)
    x = np.asarray(x)
    if x.dtype.kind not in "biuf" or x.dtype.itemsize > 8:
        raise TypeError(f"x must be an array of real numbers of at most 64 bits, got {x.dtype}.")
    if x.ndim == 0:
        raise ValueError("x must have at least one dimension.")
    axis = normalize_axis_index(axis, x.ndim)
    x = x.astype(np.float32 if x.dtype.char == "f" else np.float64, copy=False)
    if smoothing == 0.0 or x.size == 0:
        return x.copy()
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        return _along(x.T, smoothing, x.ndim - 1 - axis).T
    return _along(np.ascontiguousarray(x), smoothing, axis)


def _along(x: Any, smoothing: float, axis: int) -> Any:
    """A C-contiguous array seen as (lines before, d, columns behind)."""
    shape = x.shape
    lines = math.prod(shape[:axis])
    return _smooth(x.reshape(lines, shape[axis], -1), smoothing).reshape(shape)
