#ifndef BATON_KERNELS_CPU_THREAD_POOL_H_
#define BATON_KERNELS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/cpu/peer_watch.h"
#include "kernels/cpu/read_ahead.h"

namespace baton::kernels::cpu {

int64_t SteadyNanoseconds();

// Runs loops of independent items on a fixed set of threads, the calling one
// included. Every thread has a range of neighbouring items, the same in every
// loop of as many, which it claims one by one from the front; when it has none
// left it claims those of others, from the back. A thread that wakes late finds
// the loop closed and is never waited for, so an oversubscribed machine costs
// throughput, not latency. One that is stopped inside an item is noticed by
// PeerWatch. Idle threads spin for a few microseconds, then sleep on a futex.
class ThreadPool {
 public:
  using Body = absl::FunctionRef<void(int item, int thread)>;

  using Clock = int64_t (*)();  // monotonic, in nanoseconds

  // Requires: threads >= 1. Starts threads - 1 threads. With a clock, loops
  // leave peers out as PeerWatch says; without one every loop is shared.
  explicit ThreadPool(int threads, Clock clock = nullptr);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(item, thread) for every item in [0, items), thread in
  // [0, threads()), at most one call per thread at a time; returns when all
  // have returned. One Run at a time. A thread that then waits reads
  // next[thread] into its cache, until a loop gives it another list.
  void Run(int items, Body body, const ReadAhead* next = nullptr);

  // Where the range of a thread begins; at `threads` the number of items.
  static int FirstItem(int items, int threads, int thread) {
    return static_cast<int>((int64_t{items} * thread + threads - 1) / threads);
  }

 private:
  // state_ = generation << 16 | open << 15 | stopping << 14 | threads inside
  // the loop. Only an open loop can be entered, and Run ends when the closed
  // one is empty.
  static constexpr uint32_t kOpen = 1u << 15;
  static constexpr uint32_t kStopping = 1u << 14;
  static constexpr uint32_t kInside = kStopping - 1;
  static constexpr uint32_t kGeneration = 1u << 16;

  // The unclaimed items of a thread: first << 32 | end.
  struct alignas(64) Range {
    std::atomic<uint64_t> items{0};

    int ClaimFirst();  // or -1
    int ClaimLast();
  };

  void Work(int thread);
  uint32_t WaitForOpen(uint32_t seen_generation, ReadAhead* ahead);
  int ClaimItems(int thread);
  void RunAlone(int items, const Body& body);
  void RunWatched(int items, const Body& body, const ReadAhead* next);
  // Opens a loop and runs items until none is left; returns how many.
  int Share(int items, const Body& body, const ReadAhead* next);
  void AwaitPeers(const ReadAhead* next);  // closes it

  // Waiting threads read the first line; nobody writes the rest during a loop.
  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::vector<Range> ranges_;  // per thread
  const ReadAhead* next_ = nullptr;        // per thread
  const Body* body_ = nullptr;
  const Clock clock_;
  PeerWatch peers_;
  std::vector<std::thread> workers_;
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_THREAD_POOL_H_
