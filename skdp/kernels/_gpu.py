"""The CuPy twins of the kernels: same calls, same contract, arrays stay on the device.

One warp works on a row (or a group) at a time, so what a unit adds is a function of that unit alone;
the integers are added by 64-bit integer atomics, exactly, in any order. The proof of the norm bound
is that of ``GradientKernel``: norms and factors are float64 there and here. **Not run on a device in
this release**: the source is compiled for the host and compared with the CPU kernels in the tests.
"""

from typing import Any

import numpy as np

from skdp.kernels._gpu_minibatch import MINIBATCH_SOURCE
from skdp.kernels._gradient import GradientKernel
from skdp.kernels._gradient_sums import NO_MASK
from skdp.kernels._passes import members
from skdp.kernels._rows import NORMS, PLAIN, ROUNDED

__all__ = ["SOURCE", "GpuGradientKernel", "gpu_gradient_kernel", "gpu_hard_threshold", "preamble"]

# Placeholders: T the type of the data, I that of the indices, WARP the width of a warp (32; 1 where
# the tests compile the source for the host). SPARSE chooses CSR.
SOURCE = r"""
__device__ double warp_sum(double value) {
    for (int step = WARP / 2; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

struct Problem {
    const T* data; const I* indices; const I* indptr; long long d; long long p; int K;
    const double* y; const double* weight; const double* theta; const bool* mask;
    int code; double parameter; double kappa;
};

/* Flat arguments of every kernel; a pointer that does not apply comes with a flag of 0. */
#define PROBLEM                                                                                  \
    const T *data, const I *indices, const I *indptr, long long d, long long p, int K,           \
    const double *y, int has_weight, const double *weight, const double *theta, int has_mask,    \
    const bool *mask, int code, double parameter, double kappa
#define CHOSEN int has_chosen, const long long* chosen
#define GATHER                                                                                   \
    Problem a = {data, indices, indptr, d, p, K, y, has_weight ? weight : 0, theta,              \
                 has_mask ? mask : 0, code, parameter, kappa};

__device__ long long row_start(const Problem& a, long long i) {
    return SPARSE ? (long long)a.indptr[i] : i * a.d;
}

__device__ long long column(const Problem& a, long long start, long long e) {
    return SPARSE ? (long long)a.indices[e] : e - start;
}

__device__ double derivative(const Problem& a, double score, double target) {
    double value;
    if (a.code == 2) {
        double tail = exp(-fabs(score));
        value = (score < 0 ? tail : 1.0) / (1.0 + tail) - target;
    } else {
        value = score - target;
        if (a.code == 1) value = fmin(fmax(value, -a.parameter), a.parameter);
    }
    return value + (score - score);
}

/* Linear predictors of row i into r. All lanes take part. */
__device__ void row_scores(const Problem& a, long long i, int lane, double* r) {
    long long start = row_start(a, i), stop = row_start(a, i + 1);
    for (int k = 0; k < a.K; ++k) {
        double score = 0;
        for (long long e = start + lane; e < stop; e += WARP)
            score += (double)a.data[e] * a.theta[column(a, start, e) * a.K + k];
        score = warp_sum(score);
        if (lane == 0) r[k] = score + (a.p > a.d ? a.theta[a.d * a.K + k] * a.kappa : 0.0);
    }
    __syncwarp();
}

/* Weighted derivatives of row i into r; returns a bound on their norm. All lanes take part. */
__device__ double row_derivatives(const Problem& a, long long i, int lane, double* r) {
    row_scores(a, i, lane, r);
    double w = a.weight ? a.weight[i] : 1.0, size = 0;
    if (a.code != 3) {
        double value = derivative(a, r[0], a.y[i]) * w;
        __syncwarp();
        if (lane == 0) r[0] = value;
        size = fabs(value);
    } else {
        double top = r[0], total = 0, wrong = 0;
        for (int k = 0; k < a.K; ++k) { top = fmax(top, r[k]); wrong += r[k] - r[k]; }
        for (int k = 0; k < a.K; ++k) total += exp(r[k] - top);
        __syncwarp();
        for (int k = 0; k < a.K; ++k) {
            double value = exp(r[k] - top) / total - (k == (int)a.y[i] ? 1.0 : 0.0);
            value = (value + wrong) * w;
            __syncwarp();
            if (lane == 0) r[k] = value;
            size += value * value;
        }
        size = sqrt(size) + sqrt((double)a.K) * UNDERFLOW_MARGIN;
    }
    __syncwarp();
    return size;
}

__device__ double clip_scale(double norm, double limit, double inverse) {
    double scale = limit / norm;
    if (scale > inverse) scale = inverse;
    return scale >= SMALLEST_SCALE ? scale : 0.0;
}

__device__ void add(unsigned long long* place, double value) {
    atomicAdd(place, (unsigned long long)__double2ll_rn(value));
}

extern "C" __global__ void rows(PROBLEM, long long n, CHOSEN, double limit, double inverse,
                                int mode, unsigned long long* total, double* plain, double* norms,
                                double* scratch) {
    GATHER
    int lane = threadIdx.x % WARP;
    long long warp = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    long long warps = (long long)gridDim.x * blockDim.x / WARP;
    double* r = scratch + warp * a.K;
    for (long long t = warp; t < n; t += warps) {
        long long i = has_chosen ? chosen[t] : t;
        double size = row_derivatives(a, i, lane, r), square = 0, scale = 1;
        long long start = row_start(a, i), stop = row_start(a, i + 1);
        if (mode != MODE_PLAIN) {
            for (long long e = start + lane; e < stop; e += WARP)
                if (!a.mask || a.mask[column(a, start, e)])
                    square += (double)a.data[e] * (double)a.data[e];
            square = warp_sum(square);
            if (a.p > a.d && (!a.mask || a.mask[a.d])) square += a.kappa * a.kappa;
            size *= sqrt(square) + sqrt((double)a.p) * UNDERFLOW_MARGIN;
            if (mode == MODE_NORMS) {
                if (lane == 0) norms[i] = size;
                __syncwarp();
                continue;
            }
            scale = clip_scale(size, limit, inverse);
        }
        if (scale != 0.0) {
            for (int k = 0; k < a.K; ++k) {
                double c = __dmul_rn(r[k], scale);
                for (long long e = start + lane; e < stop; e += WARP) {
                    long long j = column(a, start, e);
                    if (a.mask && !a.mask[j]) continue;
                    double value = __dmul_rn(c, (double)a.data[e]);
                    if (mode == MODE_PLAIN) atomicAdd(plain + j * a.K + k, value);
                    else add(total + j * a.K + k, value);
                }
                if (lane == 0 && a.p > a.d && (!a.mask || a.mask[a.d])) {
                    double value = __dmul_rn(c, a.kappa);
                    if (mode == MODE_PLAIN) atomicAdd(plain + a.d * a.K + k, value);
                    else add(total + a.d * a.K + k, value);
                }
            }
        }
        __syncwarp();
    }
}

/* Sum of the gradients of the rows order[first] to order[last - 1] into v. All lanes take part. */
__device__ void group_gradient(const Problem& a, const long long* order, long long first,
                               long long last, int lane, double* r, double* v) {
    for (long long c = lane; c < a.p * a.K; c += WARP) v[c] = 0;
    __syncwarp();
    for (long long q = first; q < last; ++q) {
        row_derivatives(a, order[q], lane, r);
        long long start = row_start(a, order[q]), stop = row_start(a, order[q] + 1);
        for (int k = 0; k < a.K; ++k) {
            /* The columns of a row differ, so no two lanes meet. */
            for (long long e = start + lane; e < stop; e += WARP)
                v[column(a, start, e) * a.K + k] += r[k] * (double)a.data[e];
            if (lane == 0 && a.p > a.d) v[a.d * a.K + k] += r[k] * a.kappa;
        }
        __syncwarp();
    }
}

extern "C" __global__ void groups(PROBLEM, long long n, CHOSEN, const long long* order,
                                  const long long* starts, double limit, double inverse, int mode,
                                  unsigned long long* total, double* norms, double* scratch) {
    GATHER
    int lane = threadIdx.x % WARP;
    long long warp = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    long long warps = (long long)gridDim.x * blockDim.x / WARP, entries = a.p * a.K;
    double* r = scratch + warp * (a.K + entries);
    double* v = r + a.K;
    for (long long t = warp; t < n; t += warps) {
        long long g = has_chosen ? chosen[t] : t;
        group_gradient(a, order, starts[g], starts[g + 1], lane, r, v);
        double square = 0;
        for (long long c = lane; c < entries; c += WARP)
            if (!a.mask || a.mask[c / a.K]) square += v[c] * v[c];
        double size = sqrt(warp_sum(square)) + sqrt((double)entries) * UNDERFLOW_MARGIN;
        double scale = clip_scale(size, limit, inverse);
        if (mode == MODE_NORMS) {
            if (lane == 0) norms[g] = size;
        } else if (scale != 0.0) {
            for (long long c = lane; c < entries; c += WARP)
                if ((!a.mask || a.mask[c / a.K]) && v[c] != 0)
                    add(total + c, __dmul_rn(scale, v[c]));
        }
        __syncwarp();
    }
}
"""


def preamble(dtype: Any, index: Any, sparse: bool, warp: int = 32) -> str:
    """The definitions that the source needs for one storage."""
    names = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long"}
    values = {
        "T": names[np.dtype(dtype).name],
        "I": names[np.dtype(index).name],
        "SPARSE": int(sparse),
        "WARP": warp,
        "MODE_PLAIN": PLAIN,
        "MODE_NORMS": NORMS,
        "UNDERFLOW_MARGIN": "1.4916681462400413e-154",
        "SMALLEST_SCALE": "1.0261342003245941e-289",
        "LARGEST": "1.7976931348623157e308",
    }
    return "".join(f"#define {name} {value}\n" for name, value in values.items())


WARPS_PER_BLOCK = 4


class GpuGradientKernel(GradientKernel):
    """Clipped gradient sums of rows on a CuPy device; see :class:`GradientKernel`.

    ``clipped_sum`` returns a CuPy array of int64 with the same contract. ``plain_sum`` adds floats
    by atomics, so its last bits may differ from call to call.
    """

    def __init__(self, cupy: Any, storage: Any, sparse: bool, *rest: Any) -> None:
        super().__init__(*rest)
        self._cupy = cupy
        self._storage = storage
        data, indices, _ = storage
        code = preamble(data.dtype, indices.dtype, sparse) + SOURCE + MINIBATCH_SOURCE
        self._module = cupy.RawModule(code=code, options=("--std=c++14",))

    def clipped_sum(
        self, theta: Any, clip_norm: float, unit: float, mask: Any = None, rows: Any = None
    ) -> Any:
        """See :meth:`GradientKernel.clipped_sum`."""
        mask = self._check_mask(None if mask is None else self._cupy.asnumpy(mask))
        limit, clip_units = self._limit(clip_norm, unit, mask)
        total = self._cupy.zeros(self.shape, dtype=self._cupy.uint64)
        rows = self._check_rows(rows)
        self._sums(theta, mask, rows, limit, 1.0 / unit, ROUNDED, total=total)
        return total.view(self._cupy.int64)

    def plain_sum(self, theta: Any, mask: Any = None, rows: Any = None) -> Any:
        """See :meth:`GradientKernel.plain_sum`."""
        cp = self._cupy
        mask = self._check_mask(None if mask is None else cp.asnumpy(mask))
        rows = self._check_rows(rows)
        if rows is not None and self._starts is not None:
            rows = members(cp.asnumpy(self._order), cp.asnumpy(self._starts), rows)[0]
        plain = cp.zeros(self.shape)
        self._sums(theta, mask, rows, 0.0, 1.0, PLAIN, plain=plain)
        return plain

    def norms(self, theta: Any) -> Any:
        """See :meth:`GradientKernel.norms`."""
        out = self._cupy.zeros(self.n_units)
        self._sums(theta, self._check_mask(None), None, 0.0, 1.0, NORMS, norms=out)
        out *= 1.0 + self._margin()
        return self._cupy.where(self._cupy.isfinite(out), out, np.inf)

    def _check_rows(self, rows: Any) -> Any:
        return super()._check_rows(None if rows is None else self._cupy.asnumpy(rows))

    def _problem(self, theta: Any, mask: Any) -> tuple[Any, ...]:
        """The first arguments of every kernel."""
        cp = self._cupy
        return (
            *self._storage, np.int64(self.n_features), np.int64(self.shape[0]),
            np.int32(self.n_outputs), self._y, np.int32(self._weight.size > 0), self._weight,
            self._point(theta), np.int32(mask.size > 0), cp.asarray(mask), np.int32(self._code),
            np.float64(self._parameter), np.float64(self._intercept),
        )  # fmt: skip

    def _point(self, theta: Any) -> Any:
        theta = self._cupy.ascontiguousarray(self._cupy.asarray(theta, dtype=np.float64))
        if theta.shape != self.shape:
            raise ValueError(f"theta must have shape {self.shape}, got {theta.shape}.")
        return theta

    def _units(self, rows: Any, n: int) -> tuple[Any, Any, Any]:
        """How many units, whether they are chosen, and which."""
        cp = self._cupy
        if rows is None:
            return np.int64(n), np.int32(0), cp.zeros(1, dtype=cp.int64)
        return np.int64(len(rows)), np.int32(1), cp.asarray(rows)

    def _blocks(self, gradients: int) -> int:
        """So many blocks that their gradients fit into 1 GiB, at least one."""
        entries = max(1, gradients * self.shape[0] * self.n_outputs * WARPS_PER_BLOCK)
        return max(1, min(64, 2**27 // entries)) if gradients else 1024

    def _launch(self, name: str, blocks: int, gradients: int, arguments: tuple[Any, ...]) -> None:
        """Start a kernel; its last argument is a workspace of so many gradients a warp."""
        per_warp = 2 * self.n_outputs + gradients * self.shape[0] * self.n_outputs
        scratch = self._cupy.empty(blocks * WARPS_PER_BLOCK * per_warp)
        kernel = self._module.get_function(name)
        kernel((blocks,), (32 * WARPS_PER_BLOCK,), (*arguments, scratch))

    def _sums(
        self, theta: Any, mask: Any, rows: Any, limit: float, inverse: float, mode: int,
        total: Any = None, plain: Any = None, norms: Any = None,
    ) -> None:  # fmt: skip
        cp = self._cupy
        problem = self._problem(theta, mask)
        total = cp.zeros(1, dtype=cp.uint64) if total is None else total
        plain, norms = (cp.zeros(1) if out is None else out for out in (plain, norms))
        tail = (np.float64(limit), np.float64(inverse), np.int32(mode), total)
        if self._starts is not None and mode != PLAIN:
            units = (*self._units(rows, self.n_units), self._order, self._starts)
            self._launch("groups", self._blocks(1), 1, (*problem, *units, *tail, norms))
        else:
            chosen = self._units(rows, self.n_rows)
            self._launch("rows", self._blocks(0), 0, (*problem, *chosen, *tail, plain, norms))

    def _recursive_integers(
        self, theta: Any, previous: Any, rows: Any, limits: tuple[float, float], momentum: float,
        unit: float, _size: float,
    ) -> Any:  # fmt: skip
        cp = self._cupy
        total = cp.zeros(self.shape, dtype=cp.uint64)
        problem = (*self._problem(theta, NO_MASK), self._point(previous))
        tail = (*map(np.float64, (*limits, momentum, 1.0 / unit)), total)
        units = self._units(rows, self.n_units)
        if self._starts is None:
            self._launch("recursive_rows", self._blocks(0), 0, (*problem, *units, *tail))
        else:
            arguments = (*problem, *units, self._order, self._starts, *tail)
            self._launch("recursive_groups", self._blocks(2), 2, arguments)
        return total.view(cp.int64)

    def _loss_integers(self, thetas: Any, rows: Any, bound: float, unit: float, top: float) -> Any:
        cp = self._cupy
        totals = cp.zeros(len(thetas), dtype=cp.uint64)
        nothing = cp.zeros(1, dtype=cp.int64)
        grouped = self._starts is not None
        order, starts = (self._order, self._starts) if grouped else (nothing, nothing)
        units = (*self._units(rows, self.n_units), np.int32(grouped), order, starts)
        limits = tuple(map(np.float64, (bound, 1.0 / unit, top)))
        for t, theta in enumerate(thetas):
            arguments = (*self._problem(theta, NO_MASK), *units, *limits, totals[t : t + 1])
            self._launch("losses", self._blocks(0), 0, arguments)
        return totals.view(cp.int64)


def _device_storage(cp: Any, X: Any) -> tuple[Any, Any, Any]:
    """Data, indices and indptr on the device; a dense X gets two dummies."""
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


def _check_csr(X: Any) -> None:
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


def gpu_gradient_kernel(X: Any, *rest: Any) -> GpuGradientKernel:
    """The kernel for a CuPy array or CSR matrix; ``gradient_kernel`` has checked the rest on the host."""
    import cupy as cp

    y, loss, d, p, kappa, weight, (order, starts) = rest
    if X.dtype not in (cp.float32, cp.float64):
        X = X.astype(cp.float64)
    y, weight = (cp.asarray(vector, dtype=cp.float64) for vector in (y, weight))
    if order is not None:
        order, starts = cp.asarray(order, dtype=cp.int64), cp.asarray(starts, dtype=cp.int64)
    rest = (y, loss, d, p, kappa, weight, (order, starts))
    return GpuGradientKernel(cp, _device_storage(cp, X), hasattr(X, "indptr"), *rest)


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
