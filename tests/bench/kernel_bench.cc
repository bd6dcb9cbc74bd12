// Attention beside machine probes (kernel_bench_probes.cc) of the same run.
// Rates count bytes of K and V read, on two threads.
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

benchmark::Counter Rate(double per_iteration) {
  return {per_iteration * 1e-9, benchmark::Counter::kIsIterationInvariantRate};
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

[[maybe_unused]] const bool registered = [] {
  for (const Isa isa : kIsas) {
    if (!IsSupported(isa)) continue;
    const std::string name(IsaName(isa));
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
