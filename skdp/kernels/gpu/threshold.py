"""Hard thresholding of CuPy arrays."""

from typing import Any

__all__ = ["gpu_hard_threshold"]


def gpu_hard_threshold(x: Any, s: int) -> Any:
    """``hard_threshold`` of a CuPy array: the s-th largest bit pattern, ties by a running count."""
    import cupy as cp

    if x.dtype not in (cp.float32, cp.float64) or x.ndim not in (1, 2):
        raise ValueError("x must be a float32 or float64 array of one or two dimensions.")
    if bool(cp.isnan(x).any()):
        raise ValueError("x contains NaN.")
    d = x.shape[0]
    if s == 0 or s >= d:
        return cp.zeros_like(x) if s == 0 else x.copy()
    if x.ndim == 2:
        wide = x.astype(cp.float64)
        exponent = cp.frexp(cp.abs(wide).max(axis=1))[1]
        scaled = cp.ldexp(wide, -exponent[:, None])
        size = cp.ldexp(cp.sqrt((scaled * scaled).sum(axis=1)), exponent)
    else:
        size = cp.abs(x)
    cut = cp.partition(size, d - s)[d - s]
    above = size > cut
    ties = size == cut
    kept = above | (ties & (cp.cumsum(ties) <= s - above.sum()))
    return cp.where(kept if x.ndim == 1 else kept[:, None], x, x.dtype.type(0))
