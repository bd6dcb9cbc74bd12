// Kernels beside machine probes (kernel_bench_probes.cc) of the same run.
// Rates count 2 operations per weight and row, bytes of packed weights or of
// K and V read. Everything runs on two threads.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_backend.h"

namespace baton::kernels {
namespace {

constexpr int kThreads = 2;

std::unique_ptr<Backend> BackendFor(Isa isa) {
  auto backend = MakeCpuBackend({.isa = isa, .threads = kThreads});
  if (!backend.ok()) std::abort();
  return *std::move(backend);
}

std::vector<float> RandomFloats(size_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

std::unique_ptr<PackedMatrix> RandomWeights(Backend* backend, TensorType type,
                                            int64_t rows, int64_t cols) {
  const TensorTypeTraits& traits = TraitsOf(type);
  // 0x11 everywhere is a small positive number in every format.
  const std::vector<std::byte> data(
      rows * cols / traits.block_elements * traits.block_bytes,
      std::byte{0x11});
  return *backend->Pack({type, rows, cols, data});
}

benchmark::Counter Rate(double per_iteration) {
  return {per_iteration * 1e-9, benchmark::Counter::kIsIterationInvariantRate};
}

void Linear(benchmark::State& state, Isa isa, TensorType type, int n) {
  const int64_t rows = 3072, cols = 1536;
  const auto backend = BackendFor(isa);
  std::vector<std::unique_ptr<PackedMatrix>> matrices;
  size_t bytes = 0;  // beyond the caches of one core, as in a model
  while (bytes < (size_t{48} << 20)) {
    matrices.push_back(RandomWeights(backend.get(), type, rows, cols));
    bytes += matrices.back()->bytes();
  }
  const std::vector<float> x = RandomFloats(n * cols);
  std::vector<float> out(n * rows);
  for (auto _ : state) {
    for (const auto& matrix : matrices) {
      const LinearTarget target = {matrix.get(), out.data()};
      backend->Linear(x.data(), n, {&target, 1});
    }
  }
  const auto count = static_cast<double>(matrices.size());
  state.counters["GB/s"] = Rate(static_cast<double>(bytes));
  state.counters["GOPS"] =
      Rate(2.0 * static_cast<double>(rows * cols * n) * count);
}

// Blocks as a model with many layers lays them out, on huge pages: a pass over
// one layer reads short pieces far apart, and all layers exceed the caches.
class CacheUnderTest {
 public:
  CacheUnderTest(const KvLayout& layout, int positions)
      : bytes_((positions + KvLayout::kTokens - 1) / KvLayout::kTokens *
               layout.block_bytes()),
        data_(static_cast<std::byte*>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (data_ == MAP_FAILED) std::abort();
    madvise(data_, bytes_, MADV_HUGEPAGE);
    for (size_t at = 0; at < bytes_; at += layout.block_bytes()) {
      blocks_.push_back(data_ + at);
    }
  }
  ~CacheUnderTest() { munmap(data_, bytes_); }
  CacheUnderTest(const CacheUnderTest&) = delete;
  CacheUnderTest& operator=(const CacheUnderTest&) = delete;

  size_t bytes() const { return bytes_; }
  absl::Span<std::byte* const> blocks() const { return blocks_; }

 private:
  const size_t bytes_;
  std::byte* const data_;
  std::vector<std::byte*> blocks_;
};

void Attention(benchmark::State& state, Isa isa, int context, int n) {
  constexpr int kHeads = 9;
  constexpr int kLayers = 30;
  const KvLayout layout = {kLayers, 3, 64, KvType::kF16};
  const auto backend = BackendFor(isa);
  const int positions = context + n;
  const CacheUnderTest cache(layout, positions);
  const auto kv = RandomFloats(positions * 3 * 64);
  const SequenceRows all = {0, positions, 0, cache.blocks()};
  for (int layer = 0; layer < kLayers; ++layer) {
    backend->StoreKv(layout, layer, kv.data(), kv.data(), {&all, 1});
  }
  const auto q = RandomFloats(n * kHeads * 64);
  std::vector<float> out(q.size());
  const SequenceRows rows = {0, n, context, cache.blocks()};
  int layer = 0;
  for (auto _ : state) {
    backend->Attention(layout, layer, q.data(), kHeads, {&rows, 1}, out.data());
    layer = (layer + 1) % kLayers;
  }
  const double pairs = n * (context + (n + 1) / 2.0);
  state.counters["GB/s"] = Rate(static_cast<double>(cache.bytes()) / kLayers);
  state.counters["GFLOPS"] = Rate(4.0 * 64 * kHeads * pairs);
}

const std::vector<TensorType> kTypes = {
    TensorType::kF32,  TensorType::kF16,  TensorType::kQ8_0,
    TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,
    TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K};

[[maybe_unused]] const bool registered = [] {
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    if (!IsSupported(isa)) continue;
    const std::string name(IsaName(isa));
    for (const TensorType type : kTypes) {
      for (const int n : {1, 2, 4, 8, 64, 256}) {
        if (isa == Isa::kScalar && (n > 1 || type != TensorType::kQ4_1)) {
          continue;
        }
        const std::string linear = "Linear/" + std::string(TraitsOf(type).name);
        benchmark::RegisterBenchmark(
            (linear + "/rows:" + std::to_string(n) + "/" + name).c_str(),
            [=](benchmark::State& state) { Linear(state, isa, type, n); })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
    for (const auto& [context, n] :
         {std::pair{128, 1}, {1024, 1}, {4096, 1}, {0, 512}, {2048, 64}}) {
      benchmark::RegisterBenchmark(
          ("Attention/context:" + std::to_string(context) +
           "/rows:" + std::to_string(n) + "/" + name)
              .c_str(),
          [=](benchmark::State& state) { Attention(state, isa, context, n); })
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace baton::kernels

BENCHMARK_MAIN();
