#include "kernels/cpu/thread_pool.h"

#include <immintrin.h>

#include <chrono>

#include "kernels/cpu/float_environment.h"

namespace baton::kernels::cpu {
namespace {

constexpr uint64_t kEnd = 0xffffffff;  // of a range

// Waking a thread costs this much, so waiting as long is never worse than twice
// the best.
constexpr int64_t kSpinNanoseconds = 50'000;
constexpr int kSpinsPerLook = 16;  // at the clock

class Spinner {
 public:
  // Waits for a moment; false once it is time to sleep.
  bool Spin() {
    if (spins_++ % kSpinsPerLook != 0) {
      _mm_pause();
      return true;
    }
    const int64_t now = SteadyNanoseconds();
    if (sleep_at_ == 0) sleep_at_ = now + kSpinNanoseconds;
    return now < sleep_at_;
  }

 private:
  int spins_ = 0;
  int64_t sleep_at_ = 0;
};

// Reads ahead, spins, then sleeps, while `busy(value)`; returns the first other
// value.
template <typename Busy>
uint32_t Await(const std::atomic<uint32_t>& state, ReadAhead* ahead,
               Busy busy) {
  Spinner spinner;
  uint32_t value = state.load(std::memory_order_acquire);
  while (busy(value)) {
    if (!ahead->FetchSome() && !spinner.Spin()) {
      state.wait(value, std::memory_order_acquire);
    }
    value = state.load(std::memory_order_acquire);
  }
  return value;
}

}  // namespace

int64_t SteadyNanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch() /
         std::chrono::nanoseconds(1);
}

ThreadPool::ThreadPool(int threads, Clock clock)
    : ranges_(threads), clock_(clock) {
  for (int thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread] { Work(thread); });
  }
}

// A bit of its own: a generation could be the one that a sleeping worker saw,
// if that missed exactly the loops between the two.
ThreadPool::~ThreadPool() {
  state_.fetch_or(kStopping, std::memory_order_release);
  state_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int items, Body body, const ReadAhead* next) {
  if (workers_.empty() || items <= 1) {
    RunAlone(items, body);
  } else if (clock_ == nullptr) {
    Share(items, body, next);
    AwaitPeers(next);
  } else {
    RunWatched(items, body, next);
  }
}

void ThreadPool::RunAlone(int items, const Body& body) {
  for (int item = 0; item < items; ++item) body(item, 0);
}

void ThreadPool::RunWatched(int items, const Body& body,
                            const ReadAhead* next) {
  const int64_t start = clock_();
  if (!peers_.SharesAt(start)) {
    RunAlone(items, body);
    return;
  }
  const int own_items = Share(items, body, next);
  const int64_t worked = clock_();
  AwaitPeers(next);
  const int64_t end = clock_();
  peers_.OnLoop(end, {.items = items,
                      .own_items = own_items,
                      .work = worked - start,
                      .wait = end - worked});
}

int ThreadPool::Share(int items, const Body& body, const ReadAhead* next) {
  body_ = &body;
  next_ = next;
  const int threads = this->threads();
  for (int t = 0; t < threads; ++t) {
    // The caller has its first item, or it could not judge its peers.
    const uint64_t first = t == 0 ? 1 : FirstItem(items, threads, t);
    const uint64_t end = FirstItem(items, threads, t + 1);
    ranges_[t].items.store(first << 32 | end, std::memory_order_relaxed);
  }
  state_.fetch_add(kGeneration | kOpen, std::memory_order_release);
  state_.notify_all();
  body(0, 0);
  return 1 + ClaimItems(0);
}

void ThreadPool::AwaitPeers(const ReadAhead* next) {
  state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  ReadAhead ahead = next == nullptr ? ReadAhead() : *next;
  ahead.FetchSome();
  Await(state_, &ahead, [](uint32_t state) { return (state & kInside) != 0; });
}

int ThreadPool::Range::ClaimFirst() {
  uint64_t now = items.load(std::memory_order_relaxed);
  do {
    if (now >> 32 >= (now & kEnd)) return -1;
  } while (!items.compare_exchange_weak(now, now + (uint64_t{1} << 32),
                                        std::memory_order_relaxed));
  return static_cast<int>(now >> 32);
}

int ThreadPool::Range::ClaimLast() {
  uint64_t now = items.load(std::memory_order_relaxed);
  do {
    if (now >> 32 >= (now & kEnd)) return -1;
  } while (
      !items.compare_exchange_weak(now, now - 1, std::memory_order_relaxed));
  return static_cast<int>(now & kEnd) - 1;
}

int ThreadPool::ClaimItems(int thread) {
  int claimed = 0;
  for (int item; (item = ranges_[thread].ClaimFirst()) >= 0; ++claimed) {
    (*body_)(item, thread);
  }
  const int threads = this->threads();
  for (int other = thread + 1; other < thread + threads; ++other) {
    Range& range = ranges_[other % threads];
    for (int item; (item = range.ClaimLast()) >= 0; ++claimed) {
      (*body_)(item, thread);
    }
  }
  return claimed;
}

uint32_t ThreadPool::WaitForOpen(uint32_t seen_generation, ReadAhead* ahead) {
  return Await(state_, ahead, [seen_generation](uint32_t state) {
    return state / kGeneration == seen_generation && (state & kStopping) == 0;
  });
}

void ThreadPool::Work(int thread) {
  const FloatEnvironment environment;
  uint32_t generation = 0;
  ReadAhead ahead;
  for (;;) {
    uint32_t state = WaitForOpen(generation, &ahead);
    if ((state & kStopping) != 0) return;
    while ((state & kOpen) != 0 &&
           !state_.compare_exchange_weak(state, state + 1,
                                         std::memory_order_acq_rel)) {
    }
    generation = state / kGeneration;
    if ((state & kOpen) == 0) continue;
    ClaimItems(thread);
    if (next_ != nullptr) ahead = next_[thread];
    const uint32_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & (kOpen | kInside)) == 1) state_.notify_all();
  }
}

}  // namespace baton::kernels::cpu
