"""The sparse vector scan of CuPy arrays: the call and the result of the CPU kernel; arrays stay on the device.

One block of threads looks at a tile of positions at once. The first hit ends the tile, because the threshold
changes there, and the next tile begins behind it. **Not run on a device in this release**: the tests compile the
source for the host and compare it with the CPU kernel.
"""

from skdp.kernels.gpu.source import OPTIONS, cuda_source
from skdp.kernels.protocols import CupyArray

THREADS = 1024  # of the one block; a choice, not tuned


def gpu_numeric_sparse(
    values: CupyArray, order: CupyArray, query_noise: CupyArray, thresholds: CupyArray, value_noise: CupyArray
) -> tuple[CupyArray, CupyArray]:
    """``numeric_sparse`` of CuPy arrays; arrays of the host are copied to the device."""
    import cupy as cp

    values, order, query_noise, thresholds, value_noise = (
        cp.ascontiguousarray(cp.asarray(array)) for array in (values, order, query_noise, thresholds, value_noise)
    )
    indices = cp.empty(thresholds.size, dtype=cp.int64)
    released = cp.empty(thresholds.size, dtype=cp.int64)
    found = cp.zeros(1, dtype=cp.int64)
    source = cuda_source("sparse_vector.cu")
    kernel = cp.RawModule(code=source, options=OPTIONS).get_function("scan")
    sizes = cp.int64(order.size), cp.int64(thresholds.size)
    arguments = (values, order, query_noise, sizes[0], thresholds, value_noise, sizes[1])
    kernel((1,), (THREADS,), (*arguments, indices, released, found))
    hits = int(found[0])
    return indices[:hits], released[:hits]
