// The CUDA kernels on a CPU, a fibre for every thread of theirs: what src/treelax/ops/device.cuh calls by name.
#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <deque>
#include <memory>
#include <vector>

struct Block;
struct Fibre {
  Block *block;
  int thread, id, cluster_rank;
  jmp_buf state;
  std::vector<char> stack;
};
static Fibre *current;
static jmp_buf main_state;
static std::deque<Fibre *> ready;
static int BLOCK_THREADS, from_last;

static void run_next() {
  if (ready.empty()) _longjmp(main_state, 1);
  current = from_last ? ready.back() : ready.front();
  from_last ? ready.pop_back() : ready.pop_front();
  _longjmp(current->state, 1);
}
struct Barrier {
  size_t size;
  std::vector<Fibre *> waiting;
  void wait() {
    waiting.push_back(current);
    if (waiting.size() == size) {
      ready.insert(ready.end(), waiting.begin(), waiting.end());
      waiting.clear();
    }
    if (!_setjmp(current->state)) run_next();
  }
};
enum { GUARD = 64 };  // numbers past the end of shared memory, which nobody may write
struct Block {
  Barrier all;
  std::vector<Barrier> warps;
  std::vector<double> shared, exchanged;
  Block(int threads, int bytes)
      : all{size_t(threads), {}}, warps(threads / 32, Barrier{32, {}}), shared(bytes / 8 + GUARD, NAN),
        exchanged(8 * threads) {}
};
static Barrier cluster;

#define THREAD (current->thread)
#define BLOCK_ID (current->id)
#define CLUSTER_RANK (current->cluster_rank)
#define DEVICE inline
#define KERNEL static
#define PARAMS const Args &a
#define UNROLL
#define LEADING_ZEROS(x) ((x) ? __builtin_clz(x) : 32)
#define WARP_SYNC() current->block->warps[THREAD >> 5].wait()
#define BLOCK_SYNC() current->block->all.wait()
#define CLUSTER_SYNC() cluster.wait()
#define SHARED reinterpret_cast<real *>(current->block->shared.data())

template <class R>
static R maximum(R a, R b) {
  return a > b ? a : b;
}
// What all threads of an aligned group give, combined in the order of the threads.
template <int N, class R, class F>
static void combine(R *v, int lanes, F f) {
  double *all = current->block->exchanged.data();
  for (int c = 0; c < N; c++) all[8 * THREAD + c] = v[c];
  WARP_SYNC();
  for (int c = 0; c < N; c++) {
    int first = THREAD & ~(lanes - 1);
    v[c] = R(all[8 * first + c]);
    for (int t = first + 1; t < first + lanes; t++) v[c] = f(v[c], R(all[8 * t + c]));
  }
  WARP_SYNC();
}
template <int LANES, class R, int N>
static void sum_of_lanes(R (&v)[N]) {
  combine<N>(v, LANES, [](R a, R b) { return a + b; });
}
template <int LANES, class R, int N>
static void max_of_lanes(R (&v)[N]) {
  combine<N>(v, LANES, maximum<R>);
}
template <class R>
static R SHUFFLE(R v, int o) {
  double *all = current->block->exchanged.data();
  all[8 * THREAD] = v;
  WARP_SYNC();
  R other = R(all[8 * (THREAD ^ o)]);
  WARP_SYNC();
  return other;
}
static int BLOCK_ANY(int v) {
  double *all = current->block->exchanged.data();
  all[8 * THREAD] = v;
  BLOCK_SYNC();
  int any = 0;
  for (int t = 0; t < BLOCK_THREADS; t++) any |= all[8 * t] != 0;
  BLOCK_SYNC();
  return any;
}
static float power(float x) { return exp2f(x); }
static double power(double x) { return exp2(x); }
static float logarithm(float x) { return log2f(x); }
static double logarithm(double x) { return log2(x); }
static float reciprocal(float x) { return 1 / x; }
static double reciprocal(double x) { return 1 / x; }

#include SOURCE

static const Args *arguments;
static int is_backward;
static void begin() {
  if (!_setjmp(current->state)) _longjmp(main_state, 1);
  is_backward ? BACKWARD(*arguments) : FORWARD(*arguments);
  run_next();
}

// Whether the kernel wrote past its shared memory. The order in which fibres run must change nothing.
extern "C" int launch(int backward, const Args *a, int blocks, int threads, int shared, int reversed) {
  static ucontext_t back, start;
  int together = CLUSTER_BLOCKS ? CLUSTER_BLOCKS : 1, past = 0;
  BLOCK_THREADS = threads, arguments = a, is_backward = backward, from_last = reversed;
  std::vector<Fibre> fibres(threads * together);
  for (int first = 0; first < blocks; first += together) {
    cluster = {fibres.size(), {}};
    std::vector<std::unique_ptr<Block>> own;
    for (int b = 0; b < together; b++) own.push_back(std::make_unique<Block>(threads, shared));
    for (size_t t = 0; t < fibres.size(); t++) {
      Fibre &fibre = *(current = &fibres[t]);
      int rank = int(t) / threads;
      fibre.block = own[rank].get(), fibre.thread = int(t) % threads;
      fibre.id = first + rank, fibre.cluster_rank = rank, fibre.stack.resize(1 << 15);
      getcontext(&start);
      start.uc_stack.ss_sp = fibre.stack.data(), start.uc_stack.ss_size = fibre.stack.size();
      makecontext(&start, begin, 0);
      if (!_setjmp(main_state)) swapcontext(&back, &start);
      ready.push_back(&fibre);
    }
    if (!_setjmp(main_state)) run_next();
    for (auto &block : own)
      for (int g = 0; g < GUARD; g++) past |= !std::isnan(block->shared.end()[-1 - g]);
  }
  return past;
}
