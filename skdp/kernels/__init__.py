"""Compiled loops over rows: numba on the CPU, CuPy on a GPU, chosen by the type of the arrays once per fit.

numba and CuPy are imported when a kernel is first used, not when this module is.
"""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "GradientKernel": "skdp.kernels.gradient.cpu",
        "Negatives": "skdp.kernels.negatives",
        "SupGradientKernel": "skdp.kernels.sup.kernel",
        "VertexKernel": "skdp.kernels.sup.vertices",
        "add_rounded": "skdp.kernels.record_squares",
        "add_rounded_rows": "skdp.kernels.table_rows",
        "add_table_rows": "skdp.kernels.table_rows",
        "are_rows_alone": "skdp.kernels.alone",
        "blas_that_dies": "skdp.kernels.blas",
        "cbow_losses": "skdp.kernels.cbow",
        "csr_cut_scores": "skdp.kernels.cut_scores",
        "dense_cut_scores": "skdp.kernels.cut_scores",
        "gradient_kernel": "skdp.kernels.gradient.cpu",
        "gram_products": "skdp.kernels.record_squares",
        "hard_threshold": "skdp.kernels.threshold",
        "inner_jit": "skdp.kernels.numba_jit",
        "is_cupy": "skdp.kernels.dispatch",
        "jit": "skdp.kernels.numba_jit",
        "jit_fused": "skdp.kernels.numba_jit",
        "laplacian_smooth": "skdp.kernels.smooth.laplacian",
        "linear_scores": "skdp.kernels.scores",
        "merge_table_rows": "skdp.kernels.table_rows",
        "momentum_step": "skdp.kernels.momentum",
        "n_threads": "skdp.kernels.threads",
        "numeric_sparse": "skdp.kernels.sparse_vector",
        "one_blas_thread": "skdp.kernels.blas",
        "on_host": "skdp.kernels.dispatch",
        "outer_inner_products": "skdp.kernels.record_squares",
        "row_inner_products": "skdp.kernels.record_squares",
        "masked_outer_squares": "skdp.kernels.record_squares",
        "row_squares": "skdp.kernels.record_squares",
        "rows_alone": "skdp.kernels.alone",
        "run_blocks": "skdp.kernels.threads",
        "sum_cbow_gradients": "skdp.kernels.cbow",
        "sup_gradient_kernel": "skdp.kernels.sup.kernel",
        "vertex_kernel": "skdp.kernels.sup.vertices",
        "warn_without_cache": "skdp.kernels.numba_jit",
    },
)
