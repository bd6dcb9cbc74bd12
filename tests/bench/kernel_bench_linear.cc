// Linear layers by weight type, rows, instruction set and threads, beside the
// limits of the machine in the same run: `of_dram` and `of_peak` are fractions
// of reading the weights and of int8 (fp32 for float types) arithmetic from
// registers, `of_limit` of whichever binds. Operations are 2 per weight and
// row, bytes those of the packed weights, more than the caches hold.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/api/block_formats.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/bench/machine_probes.h"

namespace baton::kernels {
namespace {

constexpr int64_t kOutputs = 3072;
constexpr int64_t kInputs = 1536;
constexpr size_t kBytes = size_t{96} << 20;
constexpr int kMostRows = 256;

struct Limits {
  double bytes_per_second;
  double operations_per_second;
};

const Limits& LimitsOf(Isa isa, bool quantized, int threads) {
  static std::map<std::tuple<Isa, bool, int>, Limits> known;
  const auto [entry, missing] = known.try_emplace({isa, quantized, threads});
  if (missing) {
    entry->second = {
        ReadBandwidth(kBytes, threads),
        quantized ? Int8Peak(isa, threads) : Fp32Peak(isa, threads)};
  }
  return entry->second;
}

// Copies of one matrix, as the layers of a model.
class Layers {
 public:
  Layers(Isa isa, TensorType type, int threads) {
    auto backend = MakeCpuBackend({.isa = isa, .threads = threads});
    if (!backend.ok()) std::abort();
    backend_ = *std::move(backend);
    const TensorTypeTraits& traits = TraitsOf(type);
    // 0x11 everywhere is a small positive number in every format.
    const std::vector<std::byte> data(MatrixBytes(traits), std::byte{0x11});
    while (bytes_ < kBytes) {
      matrices_.push_back(*backend_->Pack({type, kOutputs, kInputs, data}));
      bytes_ += matrices_.back()->bytes();
    }
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& value : x_) value = normal(random);
  }

  size_t bytes() const { return bytes_; }
  double weights() const {
    return static_cast<double>(kOutputs * kInputs) *
           static_cast<double>(matrices_.size());
  }

  void Multiply(int rows) {
    for (const auto& matrix : matrices_) {
      const LinearTarget target = {matrix.get(), out_.data()};
      backend_->Linear(x_.data(), rows, {&target, 1});
    }
  }

 private:
  static size_t MatrixBytes(const TensorTypeTraits& traits) {
    return kOutputs * kInputs / traits.block_elements * traits.block_bytes;
  }

  std::unique_ptr<Backend> backend_;
  std::vector<std::unique_ptr<PackedMatrix>> matrices_;
  size_t bytes_ = 0;
  std::vector<float> x_ = std::vector<float>(kMostRows * kInputs);
  std::vector<float> out_ = std::vector<float>(kMostRows * kOutputs);
};

// The latest are kept: the rows of one case come one after the other.
Layers& LayersOf(Isa isa, TensorType type, int threads) {
  static std::tuple<Isa, TensorType, int> key;
  static std::unique_ptr<Layers> layers;
  if (layers == nullptr || key != std::tuple{isa, type, threads}) {
    layers.reset();
    layers = std::make_unique<Layers>(isa, type, threads);
    key = {isa, type, threads};
  }
  return *layers;
}

void SetRate(benchmark::State& state, const char* name, double per_iteration) {
  state.counters[name] = benchmark::Counter(
      per_iteration, benchmark::Counter::kIsIterationInvariantRate);
}

void Linear(benchmark::State& state, Isa isa, TensorType type, int rows,
            int threads) {
  Layers& layers = LayersOf(isa, type, threads);
  const Limits& limits = LimitsOf(isa, IsQuantized(type), threads);
  for (auto _ : state) layers.Multiply(rows);
  const auto bytes = static_cast<double>(layers.bytes());
  const double operations = 2.0 * layers.weights() * rows;
  const double reading = bytes / limits.bytes_per_second;
  const double computing = operations / limits.operations_per_second;
  SetRate(state, "GB/s", bytes * 1e-9);
  SetRate(state, "GOPS", operations * 1e-9);
  SetRate(state, "of_dram", reading);
  SetRate(state, "of_peak", computing);
  SetRate(state, "of_limit", std::max(reading, computing));
}

[[maybe_unused]] const bool registered = [] {
  constexpr TensorType kTypes[] = {TensorType::kF32,  TensorType::kF16,
                                   TensorType::kI8,   TensorType::kQ8_0,
                                   TensorType::kQ4_0, TensorType::kQ4_1,
                                   TensorType::kQ5_0, TensorType::kQ4_K,
                                   TensorType::kQ5_K, TensorType::kQ6_K};
  for (const Isa isa : kIsas) {
    if (!IsSupported(isa)) continue;
    for (const TensorType type : kTypes) {
      for (const int threads : {1, 2}) {
        for (const int rows : {1, 2, 3, 4, 8, 16, 64, kMostRows}) {
          const bool one = type == TensorType::kQ4_1 && rows == 1;
          if (isa == Isa::kScalar && !one) continue;
          benchmark::RegisterBenchmark(
              ("Linear/" + std::string(TraitsOf(type).name) + "/rows:" +
               std::to_string(rows) + "/" + std::string(IsaName(isa)) +
               "/threads:" + std::to_string(threads))
                  .c_str(),
              [=](benchmark::State& state) {
                Linear(state, isa, type, rows, threads);
              })
              ->UseRealTime()
              ->Unit(benchmark::kMillisecond);
        }
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace baton::kernels
