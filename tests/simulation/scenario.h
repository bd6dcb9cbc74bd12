#ifndef BATON_TESTS_SIMULATION_SCENARIO_H_
#define BATON_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/router_process.h"
#include "tests/simulation/sim_transport.h"
#include "tests/simulation/worker_process.h"
#include "tests/simulation/workload.h"

namespace baton::simulation {

// How often something happens to the processes until the cluster is healed.
struct FaultPlan {
  uint32_t worker_crashes = 0;
  uint32_t worker_freezes = 0;
  uint32_t router_crashes = 0;
  uint32_t session_breaks = 0;
  Duration max_downtime = std::chrono::seconds(3);
  Duration max_freeze = std::chrono::seconds(8);
};

// A cluster, its clients and what goes wrong: a function of the seed.
struct Scenario {
  uint64_t seed = 0;
  std::vector<RouterShape> routers;
  std::vector<WorkerShape> prefill_workers;
  std::vector<WorkerShape> decode_workers;
  WorkloadShape workload;
  NetworkFaults network;
  FaultPlan faults;
  Duration fault_time = std::chrono::seconds(12);
  uint32_t control_requests = 6;  // after healing; must succeed

  // Nothing goes wrong: then every patient client must succeed.
  bool undisturbed() const;
  std::string ToString() const;
  static Scenario Draw(uint64_t seed);
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_SCENARIO_H_
