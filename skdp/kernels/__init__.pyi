# Written by tools/make_stubs.py.

from skdp.kernels.blas import one_blas_thread as one_blas_thread
from skdp.kernels.cbow import add_cbow_gradients as add_cbow_gradients
from skdp.kernels.cbow import cbow_losses as cbow_losses
from skdp.kernels.dispatch import is_cupy as is_cupy
from skdp.kernels.gradient.kernel import GradientKernel as GradientKernel
from skdp.kernels.gradient.kernel import gradient_kernel as gradient_kernel
from skdp.kernels.numba_jit import jit as jit
from skdp.kernels.numba_jit import jit_fused as jit_fused
from skdp.kernels.record_squares import add_rounded as add_rounded
from skdp.kernels.record_squares import gram_products as gram_products
from skdp.kernels.record_squares import masked_outer_squares as masked_outer_squares
from skdp.kernels.record_squares import outer_inner_products as outer_inner_products
from skdp.kernels.record_squares import row_inner_products as row_inner_products
from skdp.kernels.record_squares import row_squares as row_squares
from skdp.kernels.scores import linear_scores as linear_scores
from skdp.kernels.smooth.laplacian import laplacian_smooth as laplacian_smooth
from skdp.kernels.sparse_vector import numeric_sparse as numeric_sparse
from skdp.kernels.sup.kernel import SupGradientKernel as SupGradientKernel
from skdp.kernels.sup.kernel import sup_gradient_kernel as sup_gradient_kernel
from skdp.kernels.sup.vertices import VertexKernel as VertexKernel
from skdp.kernels.sup.vertices import vertex_kernel as vertex_kernel
from skdp.kernels.table_rows import add_table_rows as add_table_rows
from skdp.kernels.table_rows import merge_table_rows as merge_table_rows
from skdp.kernels.threads import n_threads as n_threads
from skdp.kernels.threads import run_blocks as run_blocks
from skdp.kernels.threshold import hard_threshold as hard_threshold
