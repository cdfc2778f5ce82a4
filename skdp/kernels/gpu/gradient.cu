
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
    if (a.K == 1) {
        double value = loss_derivative(a.code, a.parameter, r[0], a.y[i]) * w;
        __syncwarp();
        if (lane == 0) r[0] = value;
        size = fabs(value);
    } else {
        size = several_derivatives(a.code, a.parameter, r, a.K, a.y[i], w, lane);
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

/* Sum of the gradients of the rows order[first] to order[last - 1] into v. All lanes take part. Before a lane adds to
   an entry that another one set to zero, they meet in row_derivatives; afterwards all have met. */
__device__ void group_gradient(const Problem& a, const long long* order, long long first,
                               long long last, int lane, double* r, double* v) {
    for (long long c = lane; c < a.p * a.K; c += WARP) v[c] = 0;
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
    }
}
