// What kernels call the threads and functions of CUDA. Tests have the same names for a CPU.
#define DEVICE __device__ __forceinline__
#define PARAMS Args a
#define THREAD int(threadIdx.x)
#define BLOCK_THREADS int(blockDim.x)
#define BLOCK_ID int(blockIdx.x)
#define CLUSTER_RANK (BLOCK_ID % CLUSTER_BLOCKS)
#define UNROLL _Pragma("unroll")
#define LEADING_ZEROS(x) __clz(x)
#define SHUFFLE(v, o) __shfl_xor_sync(0xffffffffu, v, o)
#define WARP_SYNC() __syncwarp()
#define BLOCK_SYNC() __syncthreads()
#define BLOCK_ANY(v) __syncthreads_or(v)
#if CLUSTER_BLOCKS == 1
#define CLUSTER_SYNC() __syncthreads()
#else
DEVICE void CLUSTER_SYNC() {
  __syncwarp();  // aligned means that all threads of a warp are here
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#endif

#if CLUSTER_BLOCKS  // two blocks of float a multiprocessor
#define KERNEL \
  extern "C" __global__ __cluster_dims__(CLUSTER_BLOCKS, 1, 1) __launch_bounds__(THREADS_AT_MOST, 8 / sizeof(REAL))
#else
#define KERNEL extern "C" __global__ __launch_bounds__(THREADS_AT_MOST)
#endif
extern __shared__ __align__(16) double shared_memory[];
#define SHARED reinterpret_cast<real *>(shared_memory)

#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define APPROXIMATE(name, instruction)                       \
  DEVICE float name(float x) {                               \
    float y;                                                 \
    asm(instruction ".approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); \
    return y;                                                \
  }
APPROXIMATE(power, "ex2")
APPROXIMATE(logarithm, "lg2")
APPROXIMATE(reciprocal, "rcp")
DEVICE float maximum(float a, float b) { return fmaxf(a, b); }
DEVICE double maximum(double a, double b) { return fmax(a, b); }
DEVICE double power(double x) { return exp2(x); }
DEVICE double logarithm(double x) { return log2(x); }
DEVICE double reciprocal(double x) { return 1 / x; }

// Over the threads of an aligned group within a warp.
template <int LANES, class R, int N>
DEVICE void sum_of_lanes(R (&v)[N]) {
  UNROLL for (int o = 1; o < LANES; o <<= 1) {
    UNROLL for (int c = 0; c < N; c++) v[c] += SHUFFLE(v[c], o);
  }
}
template <int LANES, class R, int N>
DEVICE void max_of_lanes(R (&v)[N]) {
  UNROLL for (int o = 1; o < LANES; o <<= 1) {
    UNROLL for (int c = 0; c < N; c++) v[c] = maximum(v[c], SHUFFLE(v[c], o));
  }
}
