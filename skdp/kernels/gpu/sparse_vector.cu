
extern "C" __global__ void scan(const long long* values, const long long* order,
                                const long long* query_noise, long long n,
                                const long long* thresholds, const long long* value_noise,
                                long long limit, long long* indices, long long* released,
                                long long* found) {
    __shared__ long long first;
    long long hits = 0, start = 0;
    while (start < n && hits < limit) {
        if (threadIdx.x == 0) first = n;
        __syncthreads();
        long long position = start + threadIdx.x;
        if (position < n) {
            long long value = values[order[position]];
            long long size = value < 0 ? -value : value;
            if (size + query_noise[position] >= thresholds[hits]) atomicMin(&first, position);
        }
        __syncthreads();
        long long hit = first;
        __syncthreads();
        if (hit == n) {
            start += blockDim.x;
            continue;
        }
        if (threadIdx.x == 0) {
            indices[hits] = order[hit];
            released[hits] = values[order[hit]] + value_noise[hits];
        }
        hits += 1;
        start = hit + 1;
    }
    if (threadIdx.x == 0) *found = hits;
}
