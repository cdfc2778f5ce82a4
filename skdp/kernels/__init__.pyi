# Written by tools/make_stubs.py.

from skdp.kernels._dispatch import is_cupy as is_cupy
from skdp.kernels._gradient import GradientKernel as GradientKernel
from skdp.kernels._gradient import gradient_kernel as gradient_kernel
from skdp.kernels._jit import jit as jit
from skdp.kernels._smooth import laplacian_smooth as laplacian_smooth
from skdp.kernels._sparse_vector import numeric_sparse as numeric_sparse
from skdp.kernels._supnorm import SupGradientKernel as SupGradientKernel
from skdp.kernels._supnorm import sup_gradient_kernel as sup_gradient_kernel
from skdp.kernels._threads import n_threads as n_threads
from skdp.kernels._threads import run_blocks as run_blocks
from skdp.kernels._threshold import hard_threshold as hard_threshold
from skdp.kernels._vertices import VertexKernel as VertexKernel
from skdp.kernels._vertices import vertex_kernel as vertex_kernel
