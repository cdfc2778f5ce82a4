"""Laplacian smoothing by a real FFT, with the functions of NumPy or of CuPy."""

import math
from typing import Any

__all__ = ["smooth_by_fft"]

# Larger entries are scaled down before an FFT.
HUGE = 2.0**800


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
