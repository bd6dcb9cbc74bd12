#ifndef BATON_TESTS_SIMULATION_SCENARIO_H_
#define BATON_TESTS_SIMULATION_SCENARIO_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/failpoint_schedule.h"
#include "tests/simulation/fault_kind.h"
#include "tests/simulation/restriction.h"
#include "tests/simulation/router_process.h"
#include "tests/simulation/sim_transport.h"
#include "tests/simulation/worker_process.h"
#include "tests/simulation/workload.h"

namespace baton::simulation {

// What happens to the processes until the cluster is healed.
struct FaultPlan {
  // How often, of the kinds that happen at a time.
  std::array<uint32_t, kFaultKinds> times{};
  uint32_t Times(FaultKind kind) const {
    return times[static_cast<size_t>(kind)];
  }

  Duration max_downtime = std::chrono::seconds(3);
  Duration max_freeze = std::chrono::seconds(8);
  Duration max_clock_jump = std::chrono::seconds(8);
  Duration max_partition = std::chrono::seconds(5);
  Duration max_patience = std::chrono::seconds(4);  // of a drain
  std::vector<FailpointHit> failpoints;
  // One worker at a time is drained, and nothing else goes wrong.
  bool rolling_restart = false;
};

// A cluster, its clients and what goes wrong: a function of the seed.
struct Scenario {
  uint64_t seed = 0;
  uint64_t salt = 0;  // of delays
  std::vector<RouterShape> routers;
  std::vector<WorkerShape> prefill_workers;
  std::vector<WorkerShape> decode_workers;
  WorkloadShape workload;
  // Of the workload's requests, by number; all if absent.
  std::optional<std::vector<uint32_t>> only_requests;
  NetworkFaults network;
  FaultSet faults;
  FaultPlan plan;
  Duration fault_time = std::chrono::seconds(12);
  uint32_t control_requests = 6;  // after healing; must succeed

  // Every patient client must succeed, whatever goes wrong.
  bool harmless() const;
  // The cluster works as it should all the time.
  bool calm() const;
  std::string ToString() const;

  void Restrict(const Restriction& restriction);
  static Scenario Draw(uint64_t seed);
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_SCENARIO_H_
