
/* Factors of a gradient and of a difference with these norms; both 0 drop the unit. */
__device__ void recursive_scales(double size, double moved, double limit, double moved_limit,
                                 double momentum, double inverse, double* a, double* b) {
    double scale = clip_scale(size, limit, inverse);
    double moved_scale = clip_scale(moved, moved_limit, inverse);
    bool kept = scale != 0.0 && moved_scale != 0.0;
    *a = kept ? __dmul_rn(momentum, scale) : 0.0;
    *b = kept ? __dmul_rn(1.0 - momentum, moved_scale) : 0.0;
}

__device__ double combined(double a, double now, double b, double change) {
    return __dadd_rn(__dmul_rn(a, now), __dmul_rn(b, change));
}

extern "C" __global__ void recursive_rows(PROBLEM, const double* previous, long long n, CHOSEN,
                                          double limit, double moved_limit, double momentum,
                                          double inverse, unsigned long long* total,
                                          double* scratch) {
    GATHER
    Problem former = a;
    former.theta = previous;
    int lane = threadIdx.x % WARP;
    long long warp = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    long long warps = (long long)gridDim.x * blockDim.x / WARP;
    double *now = scratch + warp * 2 * a.K, *before = now + a.K;
    for (long long t = warp; t < n; t += warps) {
        long long i = has_chosen ? chosen[t] : t;
        double size = row_derivatives(a, i, lane, now), moved = 0, square = 0, f, g;
        row_derivatives(former, i, lane, before);
        for (int k = 0; k < a.K; ++k) {
            double change = __dadd_rn(now[k], -before[k]);
            moved += change * change;
        }
        moved = a.K == 1 ? fabs(__dadd_rn(now[0], -before[0]))
                         : sqrt(moved) + sqrt((double)a.K) * UNDERFLOW_MARGIN;
        long long start = row_start(a, i), stop = row_start(a, i + 1);
        for (long long e = start + lane; e < stop; e += WARP)
            square += (double)a.data[e] * (double)a.data[e];
        square = warp_sum(square);
        if (a.p > a.d) square += a.kappa * a.kappa;
        double length = sqrt(square) + sqrt((double)a.p) * UNDERFLOW_MARGIN;
        recursive_scales(size * length, moved * length, limit, moved_limit, momentum, inverse,
                         &f, &g);
        for (int k = 0; k < a.K && (f != 0.0 || g != 0.0); ++k) {
            double c = combined(f, now[k], g, __dadd_rn(now[k], -before[k]));
            if (c == 0.0) continue;
            for (long long e = start + lane; e < stop; e += WARP)
                add(total + column(a, start, e) * a.K + k, __dmul_rn(c, (double)a.data[e]));
            if (lane == 0 && a.p > a.d) add(total + a.d * a.K + k, __dmul_rn(c, a.kappa));
        }
        __syncwarp();
    }
}

extern "C" __global__ void recursive_groups(PROBLEM, const double* previous, long long n, CHOSEN,
                                            const long long* order, const long long* starts,
                                            double limit, double moved_limit, double momentum,
                                            double inverse, unsigned long long* total,
                                            double* scratch) {
    GATHER
    Problem former = a;
    former.theta = previous;
    int lane = threadIdx.x % WARP;
    long long warp = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    long long warps = (long long)gridDim.x * blockDim.x / WARP, entries = a.p * a.K;
    double* r = scratch + warp * (a.K + 2 * entries);
    double *now = r + a.K, *before = now + entries;
    for (long long t = warp; t < n; t += warps) {
        long long unit = has_chosen ? chosen[t] : t;
        group_gradient(a, order, starts[unit], starts[unit + 1], lane, r, now);
        group_gradient(former, order, starts[unit], starts[unit + 1], lane, r, before);
        double square = 0, moved = 0, f, g;
        for (long long c = lane; c < entries; c += WARP) {
            before[c] = __dadd_rn(now[c], -before[c]);
            square += now[c] * now[c];
            moved += before[c] * before[c];
        }
        double slack = sqrt((double)entries) * UNDERFLOW_MARGIN;
        recursive_scales(sqrt(warp_sum(square)) + slack, sqrt(warp_sum(moved)) + slack, limit,
                         moved_limit, momentum, inverse, &f, &g);
        for (long long c = lane; c < entries && (f != 0.0 || g != 0.0); c += WARP) {
            double value = combined(f, now[c], g, before[c]);
            if (value != 0.0) add(total + c, value);
        }
    }
}

/* Loss of row i; NaN or infinite if a predictor is not finite. All lanes take part. */
__device__ double row_loss(const Problem& a, long long i, int lane, double* r) {
    row_scores(a, i, lane, r);
    double value = a.K == 1 ? loss_value(a.code, a.parameter, r[0], a.y[i])
                            : several_value(a.code, a.parameter, r, a.K, a.y[i]);
    __syncwarp();
    return value * (a.weight ? a.weight[i] : 1.0);
}

extern "C" __global__ void losses(PROBLEM, long long n, CHOSEN, int grouped,
                                  const long long* order, const long long* starts, double bound,
                                  double inverse, double top, unsigned long long* total,
                                  double* scratch) {
    GATHER
    int lane = threadIdx.x % WARP;
    long long warp = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    long long warps = (long long)gridDim.x * blockDim.x / WARP;
    double* r = scratch + warp * a.K;
    for (long long t = warp; t < n; t += warps) {
        long long unit = has_chosen ? chosen[t] : t;
        double loss = 0;
        if (grouped) {
            for (long long q = starts[unit]; q < starts[unit + 1]; ++q)
                loss += row_loss(a, order[q], lane, r);
        } else {
            loss = row_loss(a, unit, lane, r);
        }
        if (!(fabs(loss) <= LARGEST)) loss = bound;
        double part = rint((fmin(fmax(loss, 0.0), bound) - 0.5 * bound) * inverse);
        if (lane == 0) add(total, fmin(fmax(part, -top), top));
    }
}
