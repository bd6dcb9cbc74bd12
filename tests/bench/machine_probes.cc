#include "tests/bench/machine_probes.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

namespace baton {
namespace {

using kernels::Isa;

constexpr int kTries = 7;
constexpr int kChains = 10;  // hides the latency of two pipes
constexpr int kSteps = 400'000;
constexpr double kProbeSeconds = 0.05;

template <typename T>
void Keep(T& value) {
  asm volatile("" : "+m"(value) : : "memory");
}

using Clock = std::chrono::steady_clock;

// Seconds that `work(thread)` takes on all threads at once, at best.
template <typename Work>
double BestSeconds(int threads, Work work) {
  std::chrono::duration<double> best = Clock::duration::max();
  for (int i = 0; i < kTries; ++i) {
    std::barrier start(threads);
    std::vector<Clock::time_point> began(threads), ended(threads);
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        start.arrive_and_wait();
        began[t] = Clock::now();
        work(t);
        ended[t] = Clock::now();
      });
    }
    for (std::thread& thread : running) thread.join();
    best = std::min<std::chrono::duration<double>>(
        best, *std::max_element(ended.begin(), ended.end()) -
                  *std::min_element(began.begin(), began.end()));
  }
  return best.count();
}

class HugePages {
 public:
  explicit HugePages(size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) std::abort();
    madvise(data_, bytes, MADV_HUGEPAGE);
    auto* words = static_cast<uint64_t*>(data_);
    for (size_t i = 0; i < bytes / 8; ++i) words[i] = i;
  }
  ~HugePages() { munmap(data_, bytes_); }
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

  const std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  const size_t bytes_;
  void* const data_;
};

constexpr size_t kPiece = 256;  // bytes of one turn of the loops below
constexpr size_t kAhead = 2048;

__attribute__((target("avx2"))) void ReadAll256(const std::byte* from,
                                                size_t bytes) {
  __m256i sum[4] = {};
  for (size_t at = 0; at + kPiece <= bytes; at += kPiece) {
    for (size_t line = 0; line < kPiece; line += 64) {
      __builtin_prefetch(from + at + kAhead + line);
    }
    for (size_t i = 0; i < kPiece / 32; ++i) {
      const auto* p = reinterpret_cast<const __m256i*>(from + at + 32 * i);
      sum[i % 4] = _mm256_xor_si256(sum[i % 4], _mm256_loadu_si256(p));
    }
  }
  Keep(sum);
}

__attribute__((target("avx512f"))) void ReadAll512(const std::byte* from,
                                                   size_t bytes) {
  __m512i sum[4] = {};
  for (size_t at = 0; at + kPiece <= bytes; at += kPiece) {
    for (size_t line = 0; line < kPiece; line += 64) {
      __builtin_prefetch(from + at + kAhead + line);
    }
    for (size_t i = 0; i < kPiece / 64; ++i) {
      sum[i] = _mm512_xor_si512(sum[i], _mm512_loadu_si512(from + at + 64 * i));
    }
  }
  Keep(sum);
}

__attribute__((target("avx2"))) void Int8Avx2() {
  __m256i sum[kChains] = {};
  const __m256i a = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
  for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 10
    for (__m256i& s : sum) {
      const __m256i pairs = _mm256_maddubs_epi16(a, _mm256_xor_si256(a, s));
      s = _mm256_add_epi32(s, _mm256_madd_epi16(pairs, ones));
    }
  }
  Keep(sum);
}

__attribute__((target("avx2,avxvnni"))) void Int8AvxVnni() {
  __m256i sum[kChains] = {};
  const __m256i a = _mm256_set1_epi8(3);
  for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 10
    for (__m256i& s : sum) s = _mm256_dpbusd_avx_epi32(s, a, a);
  }
  Keep(sum);
}

__attribute__((target("avx512f,avx512vnni"))) void Int8Vnni() {
  __m512i sum[kChains] = {};
  const __m512i a = _mm512_set1_epi8(3);
  for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 10
    for (__m512i& s : sum) s = _mm512_dpbusd_epi32(s, a, a);
  }
  Keep(sum);
}

__attribute__((target("avx2,fma"))) void Fma256() {
  __m256 sum[kChains] = {};
  const __m256 a = _mm256_set1_ps(0.5f);
  for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 10
    for (__m256& s : sum) s = _mm256_fmadd_ps(a, a, s);
  }
  Keep(sum);
}

__attribute__((target("avx512f"))) void Fma512() {
  __m512 sum[kChains] = {};
  const __m512 a = _mm512_set1_ps(0.5f);
  for (int i = 0; i < kSteps; ++i) {
#pragma GCC unroll 10
    for (__m512& s : sum) s = _mm512_fmadd_ps(a, a, s);
  }
  Keep(sum);
}

double Peak(int threads, int lanes, void (*probe)()) {
  const double operations = 2.0 * lanes * kChains * kSteps * threads;
  return operations / BestSeconds(threads, [&](int) { probe(); });
}

bool IsWide(Isa isa) {
  return (isa == Isa::kAuto || isa == Isa::kAvx512 || isa == Isa::kAmx) &&
         kernels::IsSupported(Isa::kAvx512);
}

}  // namespace

double ReadBandwidth(size_t bytes, int threads) {
  const size_t share = std::max(kPiece, bytes / threads / kPiece * kPiece);
  const HugePages memory(share * threads + kAhead + kPiece);
  const auto read = IsWide(Isa::kAuto) ? ReadAll512 : ReadAll256;
  // The first guess, of 10 GB/s, only decides how long a try takes.
  const double total = static_cast<double>(share) * threads;
  const int turns =
      std::max(1, static_cast<int>(kProbeSeconds * 10e9 * threads / total));
  const double seconds = BestSeconds(threads, [&](int thread) {
    for (int i = 0; i < turns; ++i) {
      read(memory.data() + share * thread, share);
    }
  });
  return total * turns / seconds;
}

double Int8Peak(Isa isa, int threads) {
  if (IsWide(isa)) return Peak(threads, 64, Int8Vnni);
  return Peak(threads, 32, isa == Isa::kAvxVnni ? Int8AvxVnni : Int8Avx2);
}

double Fp32Peak(Isa isa, int threads) {
  return IsWide(isa) ? Peak(threads, 16, Fma512) : Peak(threads, 8, Fma256);
}

double BarrierSeconds(int threads) {
  constexpr int kRounds = 20'000;
  std::atomic<int> round{0};
  std::atomic<int> answers{0};
  const double seconds = BestSeconds(threads, [&](int thread) {
    const int first = round.load();
    for (int i = 1; i <= kRounds; ++i) {
      if (thread == 0) {
        while (answers.load() != threads - 1) _mm_pause();
        answers.store(0);
        round.store(first + i);
      } else {
        answers.fetch_add(1);
        while (round.load() != first + i) _mm_pause();
      }
    }
  });
  return seconds / kRounds;
}

}  // namespace baton
