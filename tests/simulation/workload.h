#ifndef BATON_TESTS_SIMULATION_WORKLOAD_H_
#define BATON_TESTS_SIMULATION_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/sequence/sequence.h"
#include "tests/simulation/fault_kind.h"
#include "tests/simulation/toy_model.h"
#include "tests/simulation/virtual_time.h"

namespace baton::simulation {

// What the clients of a cluster are like. Rates are shares of the clients.
struct WorkloadShape {
  uint32_t requests = 20;
  uint32_t max_prompt_tokens = 200;
  double long_prompt_rate = 0.5;  // up to that; else up to 32 tokens
  uint32_t max_tokens = 40;
  double one_token_rate = 0.05;  // max_tokens 1
  uint32_t max_choices = 3;
  double many_choices_rate = 0.5;  // more than one
  double stop_string_rate = 0.4;
  // Prompts that start with one of so many common prefixes.
  uint32_t prefixes = 2;
  uint32_t prefix_tokens = 48;
  double shared_prefix_rate = 0.2;
  uint64_t prefix_seed = 0;
  double other_priority_rate = 0.3;
  uint32_t tenants = 1;
  uint32_t versions = 1;  // of the model, that the workers may have

  Duration arrivals = std::chrono::seconds(10);  // over this long
  Duration min_deadline = std::chrono::milliseconds(20);
  Duration max_deadline = std::chrono::seconds(60);
  double short_deadline_rate = 0.1;
  double cancel_rate = 0.25;
  double slow_client_rate = 0.1;
};

// One client: what it asks, when, for how long it waits, and what it must get.
struct ClientPlan {
  std::shared_ptr<const SequenceParams> params;
  uint32_t choices = 1;
  int priority = 1;
  std::string tenant;
  uint64_t router = 0;  // modulo their number
  Duration arrival{};   // from the start
  Duration deadline{};  // from arrival
  bool patient = true;  // the deadline is the longest of the shape
  std::optional<Duration> cancel_after;  // from arrival
  std::optional<uint32_t> reads;         // events, then no more
  // By version of the model, and choice.
  std::vector<std::vector<ToyAnswer>> expected;
};

// Of what clients may do wrong, only `faults`; the rest of the plan does not
// depend on these.
ClientPlan DrawClient(const WorkloadShape& shape, FaultSet faults,
                      Random random);

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_WORKLOAD_H_
