"""Fast array kernels: numba on the CPU, CuPy on a GPU, chosen by array type once per fit.

numba and CuPy are imported when a kernel is first used, not when this module is.
"""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "GradientKernel": "skdp.kernels._gradient",
        "SupGradientKernel": "skdp.kernels._supnorm",
        "VertexKernel": "skdp.kernels._vertices",
        "gradient_kernel": "skdp.kernels._gradient",
        "hard_threshold": "skdp.kernels._threshold",
        "is_cupy": "skdp.kernels._dispatch",
        "jit": "skdp.kernels._jit",
        "laplacian_smooth": "skdp.kernels._smooth",
        "n_threads": "skdp.kernels._threads",
        "numeric_sparse": "skdp.kernels._sparse_vector",
        "run_blocks": "skdp.kernels._threads",
        "sup_gradient_kernel": "skdp.kernels._supnorm",
        "vertex_kernel": "skdp.kernels._vertices",
    },
)
