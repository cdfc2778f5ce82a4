"""Fast array kernels: numba on the CPU, CuPy on a GPU, chosen by array type once per fit.

numba and CuPy are imported when a kernel is first used, not when this module is.
"""

from importlib import import_module
from typing import Any

_NAMES = {
    "GradientKernel": "skdp.kernels.gradient.kernel",
    "SupGradientKernel": "skdp.kernels.sup.kernel",
    "VertexKernel": "skdp.kernels.sup.vertices",
    "gradient_kernel": "skdp.kernels.gradient.kernel",
    "hard_threshold": "skdp.kernels.threshold",
    "is_cupy": "skdp.kernels.dispatch",
    "jit": "skdp.kernels.numba_jit",
    "laplacian_smooth": "skdp.kernels.smooth.laplacian",
    "n_threads": "skdp.kernels.threads",
    "numeric_sparse": "skdp.kernels.sparse_vector",
    "run_blocks": "skdp.kernels.threads",
    "sup_gradient_kernel": "skdp.kernels.sup.kernel",
    "vertex_kernel": "skdp.kernels.sup.vertices",
}

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'skdp.kernels' has no attribute {name!r}")
    value = getattr(import_module(_NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
