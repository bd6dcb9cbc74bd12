#include "kernels/cpu/thread_pool.h"

#include <immintrin.h>

#include <chrono>

#include "kernels/cpu/float_environment.h"

namespace baton::kernels::cpu {
namespace {

constexpr int kSpins = 400;  // about 5 to 20 us of pauses

// Spins, then sleeps, while `busy(value)`; returns the first other value.
template <typename Busy>
uint32_t Await(const std::atomic<uint32_t>& state, Busy busy) {
  uint32_t value = state.load(std::memory_order_acquire);
  for (int i = 0; busy(value); ++i) {
    if (i < kSpins) {
      _mm_pause();
    } else {
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

ThreadPool::ThreadPool(int threads, Clock clock) : clock_(clock) {
  for (int thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread] { Work(thread); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  state_.fetch_add(kGeneration, std::memory_order_release);
  state_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(int items, Body body) {
  if (workers_.empty() || items <= 1) {
    RunAlone(items, body);
  } else if (clock_ == nullptr) {
    Share(items, body);
    AwaitPeers();
  } else {
    RunWatched(items, body);
  }
}

void ThreadPool::RunAlone(int items, const Body& body) {
  for (int item = 0; item < items; ++item) body(item, 0);
}

void ThreadPool::RunWatched(int items, const Body& body) {
  const int64_t start = clock_();
  if (!peers_.SharesAt(start)) {
    RunAlone(items, body);
    return;
  }
  const int own_items = Share(items, body);
  const int64_t worked = clock_();
  AwaitPeers();
  const int64_t end = clock_();
  peers_.OnLoop(end, {.items = items,
                      .own_items = own_items,
                      .work = worked - start,
                      .wait = end - worked});
}

int ThreadPool::Share(int items, const Body& body) {
  body_ = &body;
  items_ = items;
  // The caller has at least one, or it could not judge its peers.
  next_item_.store(1, std::memory_order_relaxed);
  state_.fetch_add(kGeneration | kOpen, std::memory_order_release);
  state_.notify_all();
  body(0, 0);
  return 1 + ClaimItems(0);
}

void ThreadPool::AwaitPeers() {
  state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  Await(state_, [](uint32_t state) { return (state & kInside) != 0; });
}

int ThreadPool::ClaimItems(int thread) {
  for (int claimed = 0;; ++claimed) {
    const int item = next_item_.fetch_add(1, std::memory_order_relaxed);
    if (item >= items_) return claimed;
    (*body_)(item, thread);
  }
}

uint32_t ThreadPool::WaitForOpen(uint32_t seen_generation) {
  return Await(state_, [seen_generation](uint32_t state) {
    return state / kGeneration == seen_generation;
  });
}

void ThreadPool::Work(int thread) {
  const FloatEnvironment environment;
  uint32_t generation = 0;
  for (;;) {
    uint32_t state = WaitForOpen(generation);
    if (stopping_.load(std::memory_order_relaxed)) return;
    while ((state & kOpen) != 0 &&
           !state_.compare_exchange_weak(state, state + 1,
                                         std::memory_order_acq_rel)) {
    }
    generation = state / kGeneration;
    if ((state & kOpen) == 0) continue;
    ClaimItems(thread);
    const uint32_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & (kOpen | kInside)) == 1) state_.notify_all();
  }
}

}  // namespace baton::kernels::cpu
