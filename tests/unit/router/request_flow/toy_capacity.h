#ifndef BATON_TESTS_UNIT_ROUTER_REQUEST_FLOW_TOY_CAPACITY_H_
#define BATON_TESTS_UNIT_ROUTER_REQUEST_FLOW_TOY_CAPACITY_H_

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/worker/chunk_planner.h"
#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {

// Clients that ask at a steady pace, or one after the other.
struct ToyLoad {
  std::string tenant;
  int prompt_tokens = 32;
  uint32_t max_tokens = 8;
  Duration deadline = std::chrono::seconds(3);
  double per_s = 0;      // open loop, if > 0
  int in_flight = 0;     // closed loop: so many at once ...
  Duration pause{0};     // ... each after so long
  MonotonicTime from{};  // of the model's time, which begins at 0
  MonotonicTime to = kNever;
};

// How a request of a load ended.
struct ToyEnd {
  std::string tenant;
  MonotonicTime asked, ended;
  MonotonicTime first_token = kNever;
  absl::Status status;
  bool refused() const { return ended == asked && !status.ok(); }
};

// One prefill and one decode worker with a speed, around a RouterCore, on
// virtual time: prompts in steps with the planner and the credit of the real
// workers, answers in batches whose steps take longer the more are in them.
// Step times vary at random. What counts is how long things wait and how much
// gets done, not what is said.
class ToyCapacity {
 public:
  struct Speed {
    double prefill_tokens_per_s = 1600;
    Duration decode_step = std::chrono::milliseconds(8);
    Duration decode_row = std::chrono::microseconds(700);
    int step_tokens = 32;  // of prompts, in a prefill step
  };
  explicit ToyCapacity(Speed speed, uint64_t seed = 1);

  void Add(ToyLoad load) { loads_.push_back({std::move(load)}); }
  // From `from` on everything takes `factor` times as long.
  void Slow(double factor, MonotonicTime from) { slow_[from] = factor; }
  void RunUntil(MonotonicTime end);
  const std::vector<ToyEnd>& ends() const { return ends_; }
  // Answered in time within [from, to), per second.
  double AnsweredPerSecond(MonotonicTime from, MonotonicTime to) const;
  CoreDriver& driver() { return driver_; }

 private:
  struct Load {
    ToyLoad load;
    MonotonicTime next{};
    int open = 0;
    std::vector<MonotonicTime> pauses{};  // ends of them
  };
  struct Request {
    ToyEnd end;
    size_t load = 0;
  };
  struct Job {
    int prompt_tokens = 0;
    int computed = 0;
    uint32_t tokens = 0;  // of the answer
    uint32_t left = 0;    // of them, to come
    bool decoding = false;
  };

  MonotonicTime now() { return MonotonicTime(driver_.now() - start_); }
  Duration Noisy(Duration mean);
  void Ask(size_t load);
  void AskDue();
  MonotonicTime NextAsk() const;
  void ReadLog();
  void OnLine(const std::string& line);
  void Forget(uint64_t attempt);
  void StartSteps();
  void EndPrefillStep();
  void EndDecodeStep();
  // Tokens of a prompt of that length are computed or not wanted any more.
  void Return(int prompt_tokens, uint64_t tokens);
  void GrantCredit();

  const Speed speed_;
  std::mt19937_64 random_;
  CoreDriver driver_;
  const MonotonicTime start_;
  const WorkerIndex p_, d_;
  std::vector<Load> loads_;
  std::map<MonotonicTime, double> slow_;
  std::map<uint64_t, Request> requests_;
  std::map<uint64_t, uint64_t> request_of_;  // attempt to request
  std::map<uint64_t, Job> jobs_;             // attempts
  ChunkPlanner planner_;
  std::vector<ChunkPlanner::Chunk> prefill_step_;
  std::set<uint64_t> decode_step_;
  MonotonicTime prefill_end_ = kNever, decode_end_ = kNever;
  uint64_t returned_ = 0, returned_short_ = 0;  // prompt tokens
  std::vector<ToyEnd> ends_;
};

}  // namespace baton::router

#endif  // BATON_TESTS_UNIT_ROUTER_REQUEST_FLOW_TOY_CAPACITY_H_
