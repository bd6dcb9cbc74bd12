#ifndef BATON_KERNELS_CPU_THREAD_POOL_H_
#define BATON_KERNELS_CPU_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/cpu/peer_watch.h"

namespace baton::kernels::cpu {

int64_t SteadyNanoseconds();

// Runs loops of independent items on a fixed set of threads, the calling one
// included. Threads claim items one by one; a thread that wakes late finds the
// loop closed and is never waited for, so an oversubscribed machine costs
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
  // have returned. One Run at a time.
  void Run(int items, Body body);

 private:
  // state_ = generation << 16 | open << 15 | threads inside the loop. Only an
  // open loop can be entered, and Run ends when the closed one is empty.
  static constexpr uint32_t kOpen = 1u << 15;
  static constexpr uint32_t kInside = kOpen - 1;
  static constexpr uint32_t kGeneration = 1u << 16;

  void Work(int thread);
  uint32_t WaitForOpen(uint32_t seen_generation);
  int ClaimItems(int thread);
  void RunAlone(int items, const Body& body);
  void RunWatched(int items, const Body& body);
  // Opens a loop and runs items until none is left; returns how many.
  int Share(int items, const Body& body);
  void AwaitPeers();  // closes it

  // On lines of their own: waiting threads read the first, working ones write
  // the second, and nobody writes the rest during a loop.
  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<int> next_item_{0};
  alignas(64) std::atomic<bool> stopping_{false};
  int items_ = 0;
  const Body* body_ = nullptr;
  const Clock clock_;
  PeerWatch peers_;
  std::vector<std::thread> workers_;
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_THREAD_POOL_H_
