#ifndef BATON_TESTS_SIMULATION_WORKLOAD_H_
#define BATON_TESTS_SIMULATION_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/sequence/sequence.h"
#include "tests/simulation/toy_model.h"
#include "tests/simulation/virtual_time.h"

namespace baton::simulation {

struct WorkloadShape {
  uint32_t requests = 20;
  uint32_t max_prompt_tokens = 200;
  uint32_t max_tokens = 40;
  uint32_t max_choices = 3;
  Duration arrivals = std::chrono::seconds(10);  // over this long
  Duration min_deadline = std::chrono::milliseconds(20);
  Duration max_deadline = std::chrono::seconds(60);
  double short_deadline_rate = 0.1;
  double cancel_rate = 0.25;
};

// One client: what it asks, when, for how long it waits, and what it must get.
struct ClientPlan {
  std::shared_ptr<const SequenceParams> params;
  uint32_t choices = 1;
  Duration arrival{};   // from the start
  Duration deadline{};  // from arrival
  bool patient = true;  // the deadline is the longest of the shape
  std::optional<Duration> cancel_after;  // from arrival
  std::vector<ToyAnswer> expected;       // by choice
};

ClientPlan DrawClient(const WorkloadShape& shape, Random* random);

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_WORKLOAD_H_
