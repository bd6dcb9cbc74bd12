#include "tests/bench/machine_probes.h"

#include <immintrin.h>
#include <sched.h>
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
constexpr int kChains = 12;
constexpr int kSteps = 400'000;
constexpr double kProbeSeconds = 0.05;

template <typename T>
void Keep(T& value) {
  asm volatile("" : "+m"(value) : : "memory");
}

using Clock = std::chrono::steady_clock;

// Keeps this thread on the `index`-th CPU it may use, or where it is if there
// are not so many: new threads of a short probe often share a core.
void PinTo(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

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
        PinTo(t);
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

// Twelve dependent chains side by side fill two pipes of latency 4. They are
// assembly in fixed registers because a compiler would compute equal chains
// once, or keep them in memory. Registers 12 to 15 are operands and scratch.
#define BATON_CLOBBERED                                                   \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
      "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

void ZeroRegisters() { asm volatile("vzeroall" : : : BATON_CLOBBERED); }

void Int8Avx2() {
  ZeroRegisters();
  for (int i = 0; i < kSteps; ++i) {
    asm volatile(
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
        "vpxor %%ymm15, %%ymm\\n, %%ymm13\n\t"
        "vpmaddubsw %%ymm13, %%ymm15, %%ymm13\n\t"
        "vpmaddwd %%ymm14, %%ymm13, %%ymm13\n\t"
        "vpaddd %%ymm13, %%ymm\\n, %%ymm\\n\n\t"
        ".endr"
        :
        :
        : BATON_CLOBBERED);
  }
}

void Int8AvxVnni() {
  ZeroRegisters();
  for (int i = 0; i < kSteps; ++i) {
    asm volatile(
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
        "%{vex%} vpdpbusd %%ymm15, %%ymm15, %%ymm\\n\n\t"
        ".endr"
        :
        :
        : BATON_CLOBBERED);
  }
}

void Int8Vnni() {
  ZeroRegisters();
  for (int i = 0; i < kSteps; ++i) {
    asm volatile(
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
        "vpdpbusd %%zmm15, %%zmm15, %%zmm\\n\n\t"
        ".endr"
        :
        :
        : BATON_CLOBBERED);
  }
}

void Fma256() {
  ZeroRegisters();
  for (int i = 0; i < kSteps; ++i) {
    asm volatile(
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
        "vfmadd231ps %%ymm15, %%ymm15, %%ymm\\n\n\t"
        ".endr"
        :
        :
        : BATON_CLOBBERED);
  }
}

void Fma512() {
  ZeroRegisters();
  for (int i = 0; i < kSteps; ++i) {
    asm volatile(
        ".irp n,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
        "vfmadd231ps %%zmm15, %%zmm15, %%zmm\\n\n\t"
        ".endr"
        :
        :
        : BATON_CLOBBERED);
  }
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
