// What the machine can do at best, measured in the same run as the kernels:
// reading memory, int8 dot products and fp32 FMA from registers.
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <cstdint>
#include <vector>

#include "kernels/cpu/cpu_backend.h"

namespace baton::kernels {
namespace {

constexpr int kChains = 10;
constexpr int kSteps = 1000;

void SetRate(benchmark::State& state, const char* name, double per_iteration) {
  state.counters[name] = benchmark::Counter(
      per_iteration * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void ProbeMemoryRead(benchmark::State& state) {
  static const std::vector<int64_t> memory((size_t{256} << 20) / 8, 1);
  const auto* from = reinterpret_cast<const __m256i*>(memory.data());
  const size_t share = memory.size() / 4 / state.threads();
  from += share * state.thread_index();
  for (auto _ : state) {
    __m256i sum[4] = {};
    for (size_t i = 0; i + 4 <= share; i += 4) {
      for (size_t j = 0; j < 4; ++j) {
        sum[j] = _mm256_add_epi64(sum[j], _mm256_loadu_si256(from + i + j));
      }
    }
    benchmark::DoNotOptimize(sum);
  }
  SetRate(state, "GB/s", static_cast<double>(share) * 32);
}

__attribute__((target("avx2"))) void Maddubs(__m256i (&sum)[kChains], __m256i a,
                                             __m256i b) {
  const __m256i ones = _mm256_set1_epi16(1);
  for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 10
    for (__m256i& s : sum) {
      const __m256i pairs = _mm256_maddubs_epi16(a, _mm256_xor_si256(b, s));
      s = _mm256_add_epi32(s, _mm256_madd_epi16(pairs, ones));
    }
  }
}

void ProbeMaddubs(benchmark::State& state) {
  __m256i sum[kChains] = {};
  const __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(5);
  for (auto _ : state) {
    Maddubs(sum, a, b);
    benchmark::DoNotOptimize(sum);
  }
  SetRate(state, "GOPS", 2.0 * 32 * kChains * kSteps);
}

__attribute__((target("avx512f,avx512vnni"))) void ProbeVnni(
    benchmark::State& state) {
  __m512i sum[kChains] = {};
  const __m512i a = _mm512_set1_epi32(0x03030303);
  for (auto _ : state) {
    for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 10
      for (__m512i& s : sum) s = _mm512_dpbusd_epi32(s, a, a);
    }
    benchmark::DoNotOptimize(sum);
  }
  SetRate(state, "GOPS", 2.0 * 64 * kChains * kSteps);
}

void ProbeFma256(benchmark::State& state) {
  __m256 sum[kChains] = {};
  const __m256 a = _mm256_set1_ps(0.5f);
  for (auto _ : state) {
    for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 10
      for (__m256& s : sum) s = _mm256_fmadd_ps(a, a, s);
    }
    benchmark::DoNotOptimize(sum);
  }
  SetRate(state, "GFLOPS", 2.0 * 8 * kChains * kSteps);
}

__attribute__((target("avx512f"))) void ProbeFma512(benchmark::State& state) {
  __m512 sum[kChains] = {};
  const __m512 a = _mm512_set1_ps(0.5f);
  for (auto _ : state) {
    for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 10
      for (__m512& s : sum) s = _mm512_fmadd_ps(a, a, s);
    }
    benchmark::DoNotOptimize(sum);
  }
  SetRate(state, "GFLOPS", 2.0 * 16 * kChains * kSteps);
}

[[maybe_unused]] const bool registered = [] {
  const auto add = [](const char* name, auto probe) {
    benchmark::RegisterBenchmark(name, probe)->Threads(2)->UseRealTime();
  };
  add("Probe/memory_read", ProbeMemoryRead);
  add("Probe/int8_avx2_maddubs", ProbeMaddubs);
  add("Probe/fp32_avx2", ProbeFma256);
  if (IsSupported(Isa::kAvx512)) {
    add("Probe/int8_avx512_vnni", ProbeVnni);
    add("Probe/fp32_avx512", ProbeFma512);
  }
  return true;
}();

}  // namespace
}  // namespace baton::kernels
