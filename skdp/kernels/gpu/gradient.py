"""Gradient sums of CuPy arrays: the calls and the contract of the CPU kernels.

The records stay on the device. Sums and norms come back as NumPy arrays, because noise is drawn on the host.

Privacy: one warp works on a row (or a group) at a time, so a unit's part is a function of that unit alone. The
integers are added by 64-bit integer atomics, exactly, in any order. Norms and factors are float64, as on the CPU,
so the proof of the norm bound is the one of `GradientKernel`.

**Not run on a device in this release**: the tests compile the source for the host and compare it with
the CPU kernels.
"""

from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from skdp.kernels.gpu.source import OPTIONS, cuda_source
from skdp.kernels.gradient.abstract import NO_MASK, GradientKernel, Inputs
from skdp.kernels.inputs import GroupRows, members_of
from skdp.kernels.losses import cuda_losses
from skdp.kernels.protocols import CupyArray, Floats, Integers, Mask, Rows
from skdp.kernels.row_factors import NORMS, PLAIN, ROUNDED


def gradient_program(dtype: DTypeLike, index: DTypeLike, sparse: bool) -> str:
    """The CUDA program for one storage: definitions, and the sources.

    T is the type of the data and I the type of the indices; SPARSE chooses CSR. WARP is the width of a warp.
    """
    names = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long"}
    values = {
        "T": names[np.dtype(dtype).name],
        "I": names[np.dtype(index).name],
        "SPARSE": int(sparse),
        "WARP": 32,
        "MODE_PLAIN": PLAIN,
        "MODE_NORMS": NORMS,
        "UNDERFLOW_MARGIN": "1.4916681462400413e-154",
        "SMALLEST_SCALE": "1.0261342003245941e-289",
        "LARGEST": "1.7976931348623157e308",
    }
    definitions = "".join(f"#define {name} {value}\n" for name, value in values.items())
    return definitions + cuda_losses() + cuda_source("gradient.cu") + cuda_source("recursive_and_loss_sums.cu")


WARPS_PER_BLOCK = 4  # a choice, not tuned
Storage = tuple[CupyArray, CupyArray, CupyArray]  # data, indices and indptr; a dense X has two dummies


class GpuGradientKernel(GradientKernel):
    """Clipped gradient sums of rows on a CuPy device; see :class:`GradientKernel`.

    Results are NumPy arrays. ``plain_sum`` adds floats by atomics, so its last bits may differ from
    call to call.
    """

    def __init__(self, cupy: ModuleType, storage: Storage, sparse: bool, inputs: Inputs) -> None:
        super().__init__(inputs)
        self._cupy = cupy
        self._storage = storage
        data, indices, _ = storage
        code = gradient_program(data.dtype, indices.dtype, sparse)
        self._module = cupy.RawModule(code=code, options=OPTIONS)

    def clipped_sum(
        self, theta: ArrayLike, clip_norm: float, unit: float, mask: Mask | None = None, rows: Rows = None
    ) -> Integers:
        """See :meth:`GradientKernel.clipped_sum`."""
        mask = self._check_mask(None if mask is None else self._cupy.asnumpy(mask))
        limit, clip_units = self._limit(clip_norm, unit, mask)
        total = self._cupy.zeros(self.shape, dtype=self._cupy.uint64)
        rows = self._check_rows(rows)
        self._sums(theta, mask, rows, limit, 1.0 / unit, ROUNDED, total=total)
        return self._cupy.asnumpy(total).view(np.int64)

    def plain_sum(self, theta: ArrayLike, mask: Mask | None = None, rows: Rows = None) -> Floats:
        """See :meth:`GradientKernel.plain_sum`."""
        cp = self._cupy
        mask = self._check_mask(None if mask is None else cp.asnumpy(mask))
        rows = self._check_rows(rows)
        if rows is not None and self._members is not None:
            order, starts = map(cp.asnumpy, self._members)
            rows = members_of(order, starts, rows)[0]
        plain = cp.zeros(self.shape)
        self._sums(theta, mask, rows, 0.0, 1.0, PLAIN, plain=plain)
        return cp.asnumpy(plain)

    def norms(self, theta: ArrayLike) -> Floats:
        """See :meth:`GradientKernel.norms`."""
        out = self._cupy.zeros(self.n_units)
        self._sums(theta, self._check_mask(None), None, 0.0, 1.0, NORMS, norms=out)
        out = self._cupy.asnumpy(out) * (1.0 + self._margin())
        return np.where(np.isfinite(out), out, np.inf)

    def _check_rows(self, rows: ArrayLike | None) -> Rows:
        return super()._check_rows(None if rows is None else self._cupy.asnumpy(rows))

    def _problem(self, theta: ArrayLike, mask: Mask) -> tuple[object, ...]:
        """The first arguments of every kernel."""
        cp = self._cupy
        return (
            *self._storage, np.int64(self.n_features), np.int64(self.shape[0]),
            np.int32(self.n_outputs), self._y, np.int32(self._weight.size > 0), self._weight,
            self._point(theta), np.int32(mask.size > 0), cp.asarray(mask), np.int32(self._code),
            np.float64(self._parameter), np.float64(self._intercept),
        )  # fmt: skip

    def _point(self, theta: ArrayLike) -> CupyArray:
        point = self._cupy.ascontiguousarray(self._cupy.asarray(theta, dtype=np.float64))
        if point.shape != self.shape:
            raise ValueError(f"theta must have shape {self.shape}, got {point.shape}.")
        return point

    def _units(self, rows: Rows, n: int) -> tuple[np.int64, np.int32, CupyArray]:
        """How many units, whether they are chosen, and which."""
        cp = self._cupy
        if rows is None:
            return np.int64(n), np.int32(0), cp.zeros(1, dtype=cp.int64)
        return np.int64(len(rows)), np.int32(1), cp.asarray(rows)

    def _blocks(self, gradients: int) -> int:
        """Number of blocks: their gradients fit into 1 GiB; at least one."""
        entries = max(1, gradients * self.shape[0] * self.n_outputs * WARPS_PER_BLOCK)
        return max(1, min(64, 2**27 // entries)) if gradients else 1024

    def _launch(self, name: str, blocks: int, gradients: int, arguments: tuple[object, ...]) -> None:
        """Start a kernel; its last argument is a workspace of so many gradients a warp."""
        per_warp = 2 * self.n_outputs + gradients * self.shape[0] * self.n_outputs
        scratch = self._cupy.empty(blocks * WARPS_PER_BLOCK * per_warp)
        kernel = self._module.get_function(name)
        kernel((blocks,), (32 * WARPS_PER_BLOCK,), (*arguments, scratch))

    def _sums(
        self, theta: ArrayLike, mask: Mask, rows: Rows, limit: float, inverse: float, mode: int,
        total: CupyArray = None, plain: CupyArray = None, norms: CupyArray = None,
    ) -> None:  # fmt: skip
        cp = self._cupy
        problem = self._problem(theta, mask)
        total = cp.zeros(1, dtype=cp.uint64) if total is None else total
        plain, norms = (cp.zeros(1) if out is None else out for out in (plain, norms))
        tail = (np.float64(limit), np.float64(inverse), np.int32(mode), total)
        if self._members is not None and mode != PLAIN:
            units = (*self._units(rows, self.n_units), *self._members)
            self._launch("groups", self._blocks(1), 1, (*problem, *units, *tail, norms))
        else:
            chosen = self._units(rows, self.n_rows)
            self._launch("rows", self._blocks(0), 0, (*problem, *chosen, *tail, plain, norms))

    def _recursive_integers(
        self, theta: ArrayLike, previous: ArrayLike, rows: Rows, limits: tuple[float, float], momentum: float,
        unit: float, size: float,
    ) -> Integers:  # fmt: skip
        cp = self._cupy
        total = cp.zeros(self.shape, dtype=cp.uint64)
        problem = (*self._problem(theta, NO_MASK), self._point(previous))
        tail = (*map(np.float64, (*limits, momentum, 1.0 / unit)), total)
        units = self._units(rows, self.n_units)
        if self._members is None:
            self._launch("recursive_rows", self._blocks(0), 0, (*problem, *units, *tail))
        else:
            arguments = (*problem, *units, *self._members, *tail)
            self._launch("recursive_groups", self._blocks(2), 2, arguments)
        return cp.asnumpy(total).view(np.int64)

    def _loss_integers(self, thetas: Floats, rows: Rows, bound: float, unit: float, top: float) -> Integers:
        cp = self._cupy
        totals = cp.zeros(len(thetas), dtype=cp.uint64)
        nothing = cp.zeros(1, dtype=cp.int64)
        groups = (np.int32(0), nothing, nothing) if self._members is None else (np.int32(1), *self._members)
        units = (*self._units(rows, self.n_units), *groups)
        limits = tuple(map(np.float64, (bound, 1.0 / unit, top)))
        for t, theta in enumerate(thetas):
            arguments = (*self._problem(theta, NO_MASK), *units, *limits, totals[t : t + 1])
            self._launch("losses", self._blocks(0), 0, arguments)
        return cp.asnumpy(totals).view(np.int64)


def _device_storage(cp: ModuleType, X: CupyArray) -> Storage:
    if hasattr(X, "indptr"):
        if getattr(X, "format", "") != "csr":
            raise ValueError("Sparse X must be CSR.")
        _check_csr(X)
        X = X.copy()
        X.has_canonical_format = False
        X.sum_duplicates()
        return X.data, X.indices, X.indptr
    nothing = cp.zeros(1, dtype=cp.int32)
    return cp.ascontiguousarray(X), nothing, nothing


def _check_csr(X: CupyArray) -> None:
    """Raise ValueError unless every row and every column lies within the arrays, as on the host."""
    indices, indptr = X.indices, X.indptr
    if indptr.shape != (X.shape[0] + 1,) or indices.shape != X.data.shape:
        raise ValueError("X is not a valid CSR matrix: its arrays do not fit each other.")
    stored = int(indptr[-1])
    ascending = int(indptr[0]) == 0 and not bool((indptr[1:] < indptr[:-1]).any())
    if ascending and stored <= indices.size:
        indices = indices[:stored]
        if not stored or (int(indices.min()) >= 0 and int(indices.max()) < X.shape[1]):
            return
    raise ValueError("X is not a valid CSR matrix: an index is out of range.")


def gpu_gradient_kernel(X: CupyArray, inputs: Inputs) -> GpuGradientKernel:
    """The kernel for a CuPy array or CSR matrix; ``gradient_kernel`` has checked the rest on the host."""
    import cupy as cp

    y, loss, d, p, kappa, weight, members = inputs
    if X.dtype not in (cp.float32, cp.float64):
        X = X.astype(cp.float64)
    y, weight = (cp.asarray(vector, dtype=cp.float64) for vector in (y, weight))
    if members is not None:
        members = GroupRows(*(cp.asarray(part, dtype=cp.int64) for part in members))
    inputs = (y, loss, d, p, kappa, weight, members)
    return GpuGradientKernel(cp, _device_storage(cp, X), hasattr(X, "indptr"), inputs)
