#include "tests/simulation/scenario.h"

#include "common/base/strings.h"
#include "tests/simulation/toy_model.h"

namespace baton::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

RouterShape DrawRouter(Random* random) {
  RouterShape shape;
  shape.options.vocabulary_size = kToyVocabulary;
  shape.options.max_replays = static_cast<int>(random->Between(2, 12));
  shape.options.stall_timeout =
      random->Between(milliseconds(2500), milliseconds(6000));
  shape.options.silence_timeout =
      random->Between(milliseconds(2500), milliseconds(6000));
  shape.options.startup_grace = seconds(2);
  shape.options.unavailable_grace = random->Between(seconds(0), seconds(5));
  shape.policy = random->Chance(0.5) ? "least_loaded" : "round_robin";
  if (random->Chance(0.3)) shape.repeat_command = 0.2 * random->Unit();
  shape.streams.max_notice = random->Between(milliseconds(5), seconds(4));
  return shape;
}

WorkerShape DrawWorker(Random* random) {
  WorkerShape shape;
  shape.step_token_budget = static_cast<uint32_t>(16 * random->Between(1, 8));
  shape.step_time = random->Between(microseconds(300), milliseconds(5));
  shape.row_time = random->Between(microseconds(5), microseconds(200));
  return shape;
}

WorkerShape DrawPrefillWorker(Random* random) {
  WorkerShape shape = DrawWorker(random);
  shape.blocks = static_cast<uint32_t>(random->Between(16, 64));
  return shape;
}

WorkerShape DrawDecodeWorker(Random* random) {
  WorkerShape shape = DrawWorker(random);
  shape.blocks = static_cast<uint32_t>(random->Between(40, 120));
  shape.max_sequences = static_cast<uint32_t>(random->Between(4, 24));
  shape.static_batching = random->Chance(0.1);
  shape.landing_timeout = random->Between(milliseconds(500), seconds(8));
  const uint64_t kind = random->Below(10);
  shape.disaggregation = kind == 0   ? v1::DISAGGREGATION_NEVER
                         : kind <= 2 ? v1::DISAGGREGATION_AUTO
                                     : v1::DISAGGREGATION_ALWAYS;
  return shape;
}

NetworkFaults DrawNetwork(Random* random) {
  NetworkFaults faults;
  faults.max_delay = random->Between(microseconds(50), milliseconds(5));
  faults.max_payload_time = random->Between(microseconds(20), milliseconds(8));
  faults.max_close_time = random->Between(milliseconds(1), milliseconds(300));
  faults.completions_in_order = random->Chance(0.5);
  if (random->Chance(0.5)) faults.break_per_message = 0.02 * random->Unit();
  if (random->Chance(0.4)) faults.stall_per_message = 0.01 * random->Unit();
  if (random->Chance(0.2)) faults.flip_per_message = 0.02 * random->Unit();
  faults.stall_time = random->Between(milliseconds(200), seconds(10));
  return faults;
}

FaultPlan DrawFaults(Random* random) {
  FaultPlan faults;
  auto some = [random](double probability, uint64_t at_most) {
    return random->Chance(probability)
               ? static_cast<uint32_t>(random->Between(1, at_most))
               : 0;
  };
  faults.worker_crashes = some(0.6, 8);
  faults.worker_freezes = some(0.3, 3);
  faults.router_crashes = some(0.15, 1);
  faults.session_breaks = some(0.6, 10);
  faults.max_downtime = random->Between(milliseconds(50), seconds(5));
  return faults;
}

}  // namespace

bool Scenario::undisturbed() const {
  return network.break_per_message == 0 && network.stall_per_message == 0 &&
         network.flip_per_message == 0 && faults.worker_crashes == 0 &&
         faults.worker_freezes == 0 && faults.router_crashes == 0 &&
         faults.session_breaks == 0;
}

std::string Scenario::ToString() const {
  return StrCat(
      "seed ", seed, ": ", routers.size(), " routers, ", prefill_workers.size(),
      " P, ", decode_workers.size(), " D, ", workload.requests,
      " requests; crashes ", faults.worker_crashes, ", freezes ",
      faults.worker_freezes, ", router crashes ", faults.router_crashes,
      ", session breaks ", faults.session_breaks, ", link breaks ",
      network.break_per_message, ", link stalls ", network.stall_per_message,
      ", flips ", network.flip_per_message);
}

Scenario Scenario::Draw(uint64_t seed) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  for (int i = 0; i < 2; ++i) scenario.routers.push_back(DrawRouter(&random));
  for (int i = 0; i < 3; ++i) {
    scenario.prefill_workers.push_back(DrawPrefillWorker(&random));
    scenario.decode_workers.push_back(DrawDecodeWorker(&random));
  }
  scenario.workload.requests = static_cast<uint32_t>(random.Between(8, 28));
  scenario.workload.max_deadline = random.Between(seconds(10), seconds(40));
  scenario.workload.cancel_rate = random.Chance(0.7) ? 0.35 : 0.0;
  scenario.workload.short_deadline_rate = random.Chance(0.7) ? 0.15 : 0.0;
  scenario.fault_time = random.Between(seconds(2), seconds(12));
  scenario.workload.arrivals = scenario.fault_time * random.Below(10) / 10;
  if (random.Chance(0.3)) scenario.workload.arrivals = milliseconds(300);
  scenario.network = DrawNetwork(&random);
  if (random.Chance(0.85)) {
    scenario.faults = DrawFaults(&random);
  } else {
    scenario.network.break_per_message = 0;
    scenario.network.stall_per_message = 0;
    scenario.network.flip_per_message = 0;
  }
  return scenario;
}

}  // namespace baton::simulation
