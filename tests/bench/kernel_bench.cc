// Attention by cache type, heads, context, rows, instruction set and threads,
// beside the limits of the machine in the same run: `of_dram` and `of_fp32` are
// fractions of reading K and V and of fp32 arithmetic from registers (also for
// I8, whose products are integers), `of_limit` of whichever of the two binds.
// Operations are 4 · head_dim per query head and visible token.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/cpu_backend.h"
#include "tests/bench/machine_probes.h"

namespace baton::kernels {
namespace {

constexpr size_t kBytes = size_t{96} << 20;  // beyond the caches
constexpr int kHeadDim = 64;

struct Shape {
  const char* name;
  int heads, kv_heads;
};
constexpr Shape kShapes[] = {{"9_of_3", 9, 3}, {"32_of_4", 32, 4}};

struct Span {
  int context, rows;  // tokens before the rows
};
constexpr Span kSpans[] = {{512, 1}, {2048, 1},   {4096, 1},
                           {0, 512}, {2048, 512}, {4096, 64}};

struct Limits {
  double bytes_per_second;
  double operations_per_second;
};

const Limits& LimitsOf(Isa isa, int threads) {
  static std::map<std::pair<Isa, int>, Limits> known;
  const auto [entry, missing] = known.try_emplace({isa, threads});
  if (missing) {
    entry->second = {ReadBandwidth(kBytes, threads), Fp32Peak(isa, threads)};
  }
  return entry->second;
}

std::vector<float> RandomFloats(size_t n) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

benchmark::Counter Rate(double per_iteration) {
  return {per_iteration, benchmark::Counter::kIsIterationInvariantRate};
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

void Attention(benchmark::State& state, Isa isa, int threads,
               const Shape& shape, KvType type, const Span& span) {
  auto made = MakeCpuBackend({.isa = isa, .threads = threads});
  if (!made.ok()) std::abort();
  const std::unique_ptr<Backend> backend = *std::move(made);
  const int positions = span.context + span.rows;
  KvLayout layout = {1, shape.kv_heads, kHeadDim, type};
  const double layer_bytes =
      static_cast<double>(layout.block_bytes()) * positions / KvLayout::kTokens;
  layout.layers =
      span.rows > 1 ? 2 : static_cast<int>(kBytes / layer_bytes) + 1;
  const CacheUnderTest cache(layout, positions);
  const auto kv = RandomFloats(positions * shape.kv_heads * kHeadDim);
  const SequenceRows all = {0, positions, 0, cache.blocks()};
  for (int layer = 0; layer < layout.layers; ++layer) {
    backend->StoreKv(layout, layer, kv.data(), kv.data(), {&all, 1});
  }
  const auto q = RandomFloats(span.rows * shape.heads * kHeadDim);
  std::vector<float> out(q.size());
  const SequenceRows rows = {0, span.rows, span.context, cache.blocks()};
  int layer = 0;
  for (auto _ : state) {
    backend->Attention(layout, layer, q.data(), shape.heads, {&rows, 1},
                       out.data());
    layer = (layer + 1) % layout.layers;
  }
  const double pairs = span.rows * (span.context + (span.rows + 1) / 2.0);
  const double operations = 4.0 * kHeadDim * shape.heads * pairs;
  const Limits& limits = LimitsOf(isa, threads);
  const double dram = layer_bytes / limits.bytes_per_second;
  const double fp32 = operations / limits.operations_per_second;
  state.counters["GB/s"] = Rate(layer_bytes * 1e-9);
  state.counters["GFLOPS"] = Rate(operations * 1e-9);
  state.counters["of_dram"] = Rate(dram);
  state.counters["of_fp32"] = Rate(fp32);
  state.counters["of_limit"] = Rate(std::max(dram, fp32));
}

[[maybe_unused]] const bool registered = [] {
  for (const Isa isa : kIsas) {
    if (!IsSupported(isa) || isa == Isa::kScalar) continue;
    for (const Shape& shape : kShapes) {
      for (const KvType type : kAllKvTypes) {
        for (const Span& span : kSpans) {
          for (const int threads : {1, 2}) {
            const std::string name =
                std::string("Attention/heads:") + shape.name +
                "/kv:" + std::string(KvTypeName(type)) +
                "/context:" + std::to_string(span.context) +
                "/rows:" + std::to_string(span.rows) + "/" +
                std::string(IsaName(isa)) +
                "/threads:" + std::to_string(threads);
            benchmark::RegisterBenchmark(name.c_str(),
                                         [=](benchmark::State& state) {
                                           Attention(state, isa, threads, shape,
                                                     type, span);
                                         })
                ->UseRealTime()
                ->Unit(benchmark::kMicrosecond);
          }
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace baton::kernels

BENCHMARK_MAIN();
