#ifndef BATON_TESTS_SIMULATION_CLIENT_H_
#define BATON_TESTS_SIMULATION_CLIENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "proto/generation.pb.h"
#include "proto/sequence.pb.h"
#include "tests/simulation/monitor.h"
#include "tests/simulation/workload.h"

namespace baton::simulation {

// The request as a router hands it to its core.
v1::SequenceSpec ToSpec(const ClientPlan& plan);

// One client, who knows what it must get and checks every event: tokens, text,
// logprobs and finish are those of the undisturbed answer, without gap or
// repeat; there is one end, in time, and nothing after it.
class Client {
 public:
  enum class State { kWaiting, kRunning, kCancelled, kEnded, kAbandoned };

  struct Promise {
    bool success = false;    // if patient: the cluster does nothing wrong ...
    bool admission = false;  // ... and has room for it
    bool numerics = false;   // no row of a step is NaN or infinity
  };
  // `monitor` outlives the client.
  Client(std::string name, ClientPlan plan, Promise promise, Monitor* monitor);

  const std::string& name() const { return name_; }
  const ClientPlan& plan() const { return plan_; }
  State state() const { return state_; }
  bool running() const {
    return state_ == State::kRunning || state_ == State::kCancelled;
  }
  bool over() const {
    return state_ == State::kEnded || state_ == State::kAbandoned;
  }

  // Times are those of the router's clock, unless said otherwise.
  void Submitted(MonotonicTime now);
  MonotonicTime deadline() const { return deadline_; }
  // False when it has ended already.
  bool Cancelled();
  // The router is dead or has died: nothing can be expected any more.
  void Abandoned() { state_ = State::kAbandoned; }
  void Received(const v1::GenerateEvent& event);
  // It lets events pile up.
  bool stopped_reading() const {
    return plan_.reads.has_value() && events_ > *plan_.reads;
  }
  void Finished(const absl::Status& status, MonotonicTime now);
  MonotonicTime finished_at() const { return finished_at_; }  // true time
  // Called at the deadline plus the grace.
  void CheckOver();

  // Where its newest attempt is, as its router saw: for the statistics.
  std::string_view phase = "queued";

 private:
  struct Choice {
    size_t tokens = 0;
    size_t text_bytes = 0;
    bool finished = false;
  };

  // Empty if the event continues the answer of that version of the model.
  std::string Difference(const v1::GenerateEvent& event,
                         uint32_t version) const;
  void CheckSuccess();
  void Violation(std::string_view what);

  const std::string name_;
  const ClientPlan plan_;
  const Promise promise_;
  Monitor* monitor_;
  State state_ = State::kWaiting;
  MonotonicTime deadline_{};
  MonotonicTime finished_at_{};
  uint32_t events_ = 0;
  std::vector<Choice> choices_;
  std::vector<std::vector<std::string>> expected_text_;  // as plan.expected
  std::vector<uint32_t> versions_;  // whose answer this may still be
  v1::Usage usage_;
  bool served_ = false;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_CLIENT_H_
