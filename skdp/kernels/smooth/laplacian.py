"""Laplacian smoothing: the exact solution of (I - s L) y = x, L the periodic 1-d Laplacian.

The matrix is (I - r S)(I - r S^T) / (1 - r)^2 with the cyclic shift S and the root 0 < r < 1 of
s r^2 - (1 + 2 s) r + s = 0, so two passes of z_i = r z_{i-1} + (1 - r) x_i solve it, one forward, one
backward. The influence of a pass's start shrinks by a factor r a step. A pass that begins early enough is exact
to the last bit everywhere, the ends of the circle included, so blocks and lanes can begin anywhere.
"""

import functools
import itertools
import math
import numbers
from types import ModuleType

import numpy as np
import scipy.fft
from numpy.lib.array_utils import normalize_axis_index

from skdp.kernels.inputs import frozen
from skdp.kernels.protocols import CupyArray, Floats, is_cupy
from skdp.kernels.smooth.passes import line_pass, narrow_pass, wide_pass
from skdp.kernels.smooth.tiles import tiled_line_pass
from skdp.kernels.threads import n_threads, run_blocks

# Larger entries are scaled down before an FFT.
HUGE = 2.0**800
# A pass runs in until the influence of its start is below 2^-60 of the largest entry: the logarithm of 2^60.
FORGOTTEN = 60 * math.log(2)
# Largest smoothing of the recursive passes. Beyond it 1 - r is so small that rounding of r shows.
LARGEST_RECURSIVE = 1e3
# A block of one line has so many entries that in and out fit the second-level cache together and handing out
# blocks costs little; the second number is for columns beside each other.
LINE_BLOCK, COLUMN_BLOCK = 60_000, 65_000
# WIDE or more columns are passed row by row, TILE at once. Fewer are passed four at a time, and fewer than FEW
# long ones one at a time.
WIDE, TILE, NARROWEST = 16, 64, 4


@functools.lru_cache(maxsize=16)
def _root(smoothing: float) -> tuple[float, float, int]:
    """r, 1 - r and the steps that a pass needs to run in."""
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


def _line_bounds(d: int, root: tuple[float, float, int]) -> list[tuple[int, int]]:
    return _bounds(d, max(LINE_BLOCK, 16 * root[2]))


def _one_line(x: Floats, root: tuple[float, float, int]) -> Floats:
    """A single contiguous line."""
    out = np.empty_like(x)
    cuts = _line_bounds(x.size, root)
    finite = []

    def block(_: int, part: int) -> None:
        finite.append(tiled_line_pass(x, out, *cuts[part], *root))

    if len(cuts) == 1:
        # Handing out a single block costs a fifth of the time of a line of 10,000.
        block(0, 0)
    else:
        run_blocks(block, len(cuts), work=4 * x.size)
    if not all(finite):
        out[:] = np.nan
    return out


def _by_lines(x: Floats, root: tuple[float, float, int]) -> Floats:
    """Each line of an array of shape (lines, d, columns) by itself."""
    out = np.empty_like(x)
    lines, d, columns = x.shape
    cuts = _line_bounds(d, root)
    kernel = tiled_line_pass if columns == 1 else line_pass
    broken = []

    def block(_: int, number: int) -> None:
        line, part = divmod(number, len(cuts))
        row, column = divmod(line, columns)
        if not kernel(x[row, :, column], out[row, :, column], *cuts[part], *root):
            broken.append((row, column))

    run_blocks(block, lines * columns * len(cuts), work=4 * x.size)
    for row, column in broken:
        out[row, :, column] = np.nan
    return out


def _by_columns(x: Floats, root: tuple[float, float, int]) -> Floats:
    """The columns of an array of shape (lines, d, columns) beside each other."""
    out = np.empty_like(x)
    lines, d, columns = x.shape
    kernel = wide_pass if columns >= WIDE else narrow_pass
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


def _smooth(x: Floats, shape: tuple[int, int, int], smoothing: float) -> Floats:
    """Along the middle axis of a contiguous array of these (lines, d, columns), with smoothing > 0."""
    lines, d, columns = shape
    recursive = smoothing <= LARGEST_RECURSIVE
    if recursive:
        root = _root(smoothing)
        warm = root[2]
        short = d < 4 * warm
        # Before and behind a line each pass runs in for `warm` rows, however short the line.
        recursive = not (short and lines > 1) and warm <= max(d, 1024)
    if not recursive:
        return smooth_by_fft(np, scipy.fft, x.reshape(shape), smoothing, workers=n_threads())
    if x.ndim == 1 and not short:
        return _one_line(frozen(x), root)
    return (_by_columns if short or columns >= NARROWEST else _by_lines)(frozen(x.reshape(shape)), root)


def _check_smoothing(smoothing: object) -> float:
    if type(smoothing) is not float and not isinstance(smoothing, numbers.Real):
        raise TypeError(f"smoothing must be a number, got {type(smoothing).__name__}.")
    smoothing = float(smoothing)
    if not 0.0 <= smoothing < math.inf:
        raise ValueError(f"smoothing must be finite and at least 0, got {smoothing}.")
    return smoothing


def laplacian_smooth(x: object, smoothing: float, axis: int = 0) -> Floats:
    """Solve ``(I - s L) y = x`` along an axis, L the periodic one-dimensional Laplacian.

    The matrix is circulant with first row ``(1 + 2 s, -s, 0, ..., 0, -s)``; for every length d its eigenvalues are
    ``1 + 2 s - 2 s cos(2 pi i / d)``, i = 0, ..., d - 1. They are at least 1, so the norm never grows; the sum of
    the entries stays. As post-processing of a private vector the map costs no privacy; as a linear map of a
    statistic it must not be counted on to lower a sensitivity.

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
    array: CupyArray = x if is_cupy(x) else np.asarray(x)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        raise TypeError(f"x must be an array of real numbers of at most 64 bits, got {array.dtype}.")
    if array.ndim == 0:
        raise ValueError("x must have at least one dimension.")
    axis = normalize_axis_index(axis, array.ndim)
    array = array.astype(np.float32 if array.dtype.char == "f" else np.float64, copy=False)
    if smoothing == 0.0 or array.size == 0:
        return array.copy()
    if is_cupy(x):  # not run on a device in this release: the tests run the same arithmetic with NumPy's FFT
        import cupy

        lines = array.reshape(math.prod(array.shape[:axis]), array.shape[axis], -1)
        return smooth_by_fft(cupy, cupy.fft, lines, smoothing).reshape(array.shape)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return _along(array.T, smoothing, array.ndim - 1 - axis).T
    return _along(np.ascontiguousarray(array), smoothing, axis)


def _along(x: Floats, smoothing: float, axis: int) -> Floats:
    """A C-contiguous array seen as (lines before, d, columns behind)."""
    shape = x.shape
    seen = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    return _smooth(x, seen, smoothing).reshape(shape)


def smooth_by_fft(xp: ModuleType, fft: ModuleType, x: CupyArray, smoothing: float, **options: int) -> CupyArray:
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
