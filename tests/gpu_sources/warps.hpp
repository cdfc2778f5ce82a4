/* CUDA on the host: a thread for every lane, barriers as the device has them.

   The lanes of a warp meet at __syncwarp, those of a block at __syncthreads; a missing one is a data race that
   ThreadSanitizer reports. A shuffle moves values but orders no memory, so its lanes meet by relaxed atomics and a raw
   futex, which the sanitizer does not take for an order. Blocks run one after the other. */
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <linux/futex.h>
#include <memory>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>
using namespace std;
#define __device__ static
#define __global__
#define __shared__ static
struct Three { int x; };
static thread_local Three threadIdx;
static Three blockIdx, blockDim, gridDim;

struct Warp {
    barrier<> lanes{32};
    atomic<double> slots[32];
    atomic<long> arrived{0};
    atomic<int> phase{0};
};
static vector<unique_ptr<Warp>> warps_of_block;
static unique_ptr<barrier<>> block_barrier;
static thread_local int generation;
static int dropped; /* this barrier does nothing */

static Warp& my_warp() { return *warps_of_block[threadIdx.x / 32]; }
static void warp_barrier(int which) { if (which != dropped) my_warp().lanes.arrive_and_wait(); }
static void whole_barrier(int which) { if (which != dropped) block_barrier->arrive_and_wait(); }
#define __syncwarp() warp_barrier(__COUNTER__)
#define __syncthreads() whole_barrier(__COUNTER__)

static void meet() {
    Warp& w = my_warp();
    int now = ++generation;
    if (w.arrived.fetch_add(1, memory_order_relaxed) + 1 == 32L * now) {
        w.phase.store(now, memory_order_relaxed);
        syscall(SYS_futex, &w.phase, FUTEX_WAKE_PRIVATE, 64, 0, 0, 0);
        return;
    }
    for (int old; (old = w.phase.load(memory_order_relaxed)) < now;)
        syscall(SYS_futex, &w.phase, FUTEX_WAIT_PRIVATE, old, 0, 0, 0);
}
static double __shfl_xor_sync(unsigned, double value, int step) {
    Warp& w = my_warp();
    int lane = threadIdx.x % 32;
    w.slots[lane].store(value, memory_order_relaxed);
    meet();
    double other = w.slots[lane ^ step].load(memory_order_relaxed);
    meet();
    return other;
}
static double __dmul_rn(double a, double b) { volatile double c = a * b; return c; }
static double __dadd_rn(double a, double b) { volatile double c = a + b; return c; }
static long long __double2ll_rn(double value) { return llrint(value); }
template <class V> static void atomicAdd(V* place, V value) {
    atomic_ref<V>(*place).fetch_add(value, memory_order_relaxed);
}
static void atomicMin(long long* place, long long value) {
    atomic_ref<long long> all(*place);
    long long old = all.load(memory_order_relaxed);
    while (value < old && !all.compare_exchange_weak(old, value, memory_order_relaxed)) {}
}
