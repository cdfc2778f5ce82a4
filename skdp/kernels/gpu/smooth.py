"""Laplacian smoothing of CuPy arrays: the spectrum divided by the eigenvalues, on the device.

**Not run on a device in this release**: the tests run the same arithmetic with NumPy's FFT.
"""

import math
from typing import Any

from skdp.kernels.smooth.fourier import smooth_by_fft

__all__ = ["gpu_laplacian_smooth"]


def gpu_laplacian_smooth(x: Any, smoothing: float, axis: int) -> Any:
    """``laplacian_smooth`` of a CuPy array, smoothing checked by the caller."""
    import cupy as cp

    if x.dtype.kind not in "biuf" or x.dtype.itemsize > 8:
        raise TypeError(f"x must be an array of real numbers of at most 64 bits, got {x.dtype}.")
    if x.ndim == 0:
        raise ValueError("x must have at least one dimension.")
    if not -x.ndim <= axis < x.ndim:
        raise cp.exceptions.AxisError(axis, x.ndim)
    axis %= x.ndim
    x = x.astype(cp.float32 if x.dtype.char == "f" else cp.float64, copy=False)
    if smoothing == 0.0 or x.size == 0:
        return x.copy()
    shape = x.shape
    lines = x.reshape(math.prod(shape[:axis]), shape[axis], -1)
    return smooth_by_fft(cp, cp.fft, lines, smoothing).reshape(shape)
