// The CUDA kernels on a CPU, a thread for every thread of theirs: what src/treelax/ops/device.cuh calls by name.
#include <barrier>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>

struct Block {
  std::barrier<> all;
  std::vector<std::unique_ptr<std::barrier<>>> warps;
  std::vector<double> shared, exchanged;
  explicit Block(int threads) : all(threads), shared(1 << 14, NAN), exchanged(threads) {
    for (int w = 0; w < threads; w += 32) warps.push_back(std::make_unique<std::barrier<>>(32));
  }
};
static thread_local Block *block;
static thread_local int THREAD, BLOCK_ID, CLUSTER_RANK;
static int BLOCK_THREADS;
static std::unique_ptr<std::barrier<>> cluster;

#define DEVICE inline
#define KERNEL static
#define PARAMS const Args &a
#define UNROLL
#define LEADING_ZEROS(x) ((x) ? __builtin_clz(x) : 32)
#define WARP_SYNC() block->warps[THREAD >> 5]->arrive_and_wait()
#define BLOCK_SYNC() block->all.arrive_and_wait()
#define CLUSTER_SYNC() cluster->arrive_and_wait()
#define SHUFFLE(v, o) real(shuffled(v, o))
#define SHARED reinterpret_cast<real *>(block->shared.data())

static double shuffled(double v, int o) {
  block->exchanged[THREAD] = v;
  WARP_SYNC();
  double other = block->exchanged[THREAD ^ o];
  WARP_SYNC();
  return other;
}
static int BLOCK_ANY(int v) {
  block->exchanged[THREAD] = v;
  BLOCK_SYNC();
  int any = 0;
  for (double x : block->exchanged) any |= x != 0;
  BLOCK_SYNC();
  return any;
}
static float power(float x) { return exp2f(x); }
static double power(double x) { return exp2(x); }
static float logarithm(float x) { return log2f(x); }
static double logarithm(double x) { return log2(x); }
static float reciprocal(float x) { return 1 / x; }
static double reciprocal(double x) { return 1 / x; }

#include "../../src/treelax/ops/eisner/soft_tree.cu"

extern "C" void launch(int backward, const Args *a, int blocks, int threads) {
  int together = CLUSTER_BLOCKS ? CLUSTER_BLOCKS : 1;
  BLOCK_THREADS = threads;
  for (int first = 0; first < blocks; first += together) {
    cluster = std::make_unique<std::barrier<>>(threads * together);
    std::vector<std::unique_ptr<Block>> own;
    std::vector<std::thread> running;
    for (int b = 0; b < together; b++) own.push_back(std::make_unique<Block>(threads));
    for (int t = 0; t < threads * together; t++)
      running.emplace_back([&, t] {
        CLUSTER_RANK = t / threads, THREAD = t % threads;
        block = own[CLUSTER_RANK].get(), BLOCK_ID = first + CLUSTER_RANK;
        backward ? soft_tree_backward(*a) : soft_tree(*a);
      });
    for (std::thread &thread : running) thread.join();
  }
}
