#include "tests/simulation/scenario.h"

#include <algorithm>

#include "common/base/strings.h"
#include "common/kv_cache/kv_memory.h"
#include "common/tokens/token.h"
#include "tests/simulation/toy_model.h"

namespace baton::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

uint32_t Number(Random* random, uint64_t low, uint64_t high) {
  return static_cast<uint32_t>(random->Between(low, high));
}

uint32_t ContextTokens(const WorkloadShape& workload) {
  return workload.max_prompt_tokens + workload.max_tokens;
}

// The most blocks that one request of the workload can need.
uint32_t MostBlocks(const WorkloadShape& workload) {
  return workload.max_choices *
         (static_cast<uint32_t>(BlocksFor(ContextTokens(workload))) + 1);
}

WorkloadShape DrawWorkload(Random random) {
  WorkloadShape workload;
  workload.requests = Number(&random, 8, 28);
  if (random.Chance(0.1)) workload.requests = Number(&random, 30, 80);
  if (random.Chance(0.15)) workload.max_prompt_tokens = 800;
  workload.long_prompt_rate = random.Unit();
  workload.one_token_rate = random.Chance(0.3) ? 0.4 * random.Unit() : 0.02;
  workload.many_choices_rate = random.Chance(0.7) ? 0.7 : 0.0;
  workload.stop_string_rate = 0.8 * random.Unit();
  workload.prefixes = Number(&random, 1, 3);
  workload.prefix_tokens = Number(&random, 1, 128);
  workload.shared_prefix_rate = random.Chance(0.5) ? random.Unit() : 0.0;
  workload.prefix_seed = random.Next();
  workload.other_priority_rate = random.Chance(0.5) ? 0.5 : 0.0;
  workload.tenants = Number(&random, 1, 3);
  workload.versions = random.Chance(0.15) ? 2 : 1;
  workload.max_deadline = random.Between(seconds(10), seconds(40));
  workload.cancel_rate = 0.35;
  workload.short_deadline_rate = 0.15;
  workload.slow_client_rate = 0.15;
  if (random.Chance(0.3)) workload.max_tokens = Number(&random, 41, 200);
  return workload;
}

RouterShape DrawRouter(const WorkloadShape& workload, Random random) {
  RouterShape shape;
  shape.options.vocabulary_size = kToyVocabulary;
  shape.options.max_replays = static_cast<int>(random.Between(2, 12));
  shape.options.stall_timeout =
      random.Between(milliseconds(2500), milliseconds(6000));
  shape.options.silence_timeout =
      random.Between(milliseconds(2500), milliseconds(6000));
  shape.options.startup_grace = seconds(2);
  shape.options.unavailable_grace = random.Between(seconds(0), seconds(5));
  if (random.Chance(0.1)) {
    shape.options.admission.max_requests = random.Between(2, 8);
    shape.options.admission.max_tokens = 4 * workload.max_prompt_tokens;
    shape.options.admission.max_age = random.Between(seconds(1), seconds(10));
  }
  shape.policy = random.Chance(0.5) ? "least_loaded" : "round_robin";
  shape.repeat_command = 0.2 * random.Unit();
  shape.streams.max_notice = random.Between(milliseconds(5), seconds(4));
  return shape;
}

WorkerShape DrawWorker(const WorkloadShape& workload, Random* random) {
  WorkerShape shape;
  shape.version = Number(random, 0, workload.versions - 1);
  shape.max_context_tokens = ContextTokens(workload) + 16;
  shape.step_token_budget = 16 * Number(random, 1, 8);
  shape.step_time = random->Between(microseconds(300), milliseconds(5));
  shape.row_time = random->Between(microseconds(5), microseconds(200));
  if (random->Chance(0.5)) {
    shape.step_target = random->Between(microseconds(100), milliseconds(10));
    // Of eight choices: a cluster has to be able to serve its load.
    shape.tpot_target = shape.step_time + 8 * shape.row_time;
  }
  return shape;
}

WorkerShape DrawPrefillWorker(const WorkloadShape& workload, bool tiny,
                              Random random) {
  WorkerShape shape = DrawWorker(workload, &random);
  const uint32_t least =
      static_cast<uint32_t>(BlocksFor(ContextTokens(workload)));
  shape.blocks = least + (tiny ? 0 : Number(&random, 0, 4 * least));
  return shape;
}

WorkerShape DrawDecodeWorker(const WorkloadShape& workload, bool tiny,
                             Random random) {
  WorkerShape shape = DrawWorker(workload, &random);
  const uint32_t least = MostBlocks(workload);
  shape.blocks = least + (tiny ? 0 : Number(&random, 0, 2 * least));
  shape.max_sequences = Number(&random, 4, 24);
  shape.static_batching = random.Chance(0.1);
  shape.landing_timeout = random.Between(milliseconds(500), seconds(8));
  const uint64_t kind = random.Below(10);
  shape.disaggregation = kind == 0   ? v1::DISAGGREGATION_NEVER
                         : kind <= 2 ? v1::DISAGGREGATION_AUTO
                                     : v1::DISAGGREGATION_ALWAYS;
  shape.max_preemptions = Number(&random, 1, 5);
  if (random.Chance(0.5)) shape.length_quantile = 0.5 * random.Unit();
  if (random.Chance(0.3)) shape.length_quantile = 0;
  if (random.Chance(0.15)) shape.forced_preemptions = Number(&random, 1, 5);
  if (random.Chance(0.5)) {
    shape.max_draft_tokens = Number(&random, 1, 20);
    shape.wrong_guesses = random.Chance(0.3) ? 0.0 : 0.6 * random.Unit();
    shape.draft_always = random.Chance(0.7);
    if (random.Chance(0.4)) shape.draft_blocks = Number(&random, 1, 2 * least);
  }
  shape.block_patience = random.Between(milliseconds(100), seconds(2));
  if (random.Chance(0.4)) {
    shape.preempted_return = random.Chance(0.8)
                                 ? decode::PreemptedReturn::kPush
                                 : decode::PreemptedReturn::kRecompute;
  }
  return shape;
}

// Few of most, many of some.
uint64_t DrawSize(Random* random, uint64_t most) {
  return std::min(random->Between(1, most), random->Between(1, most));
}

NetworkFaults DrawNetwork(Random random) {
  NetworkFaults faults;
  faults.max_delay = random.Between(microseconds(50), milliseconds(5));
  faults.max_payload_time = random.Between(microseconds(20), milliseconds(8));
  faults.max_close_time = random.Between(milliseconds(1), milliseconds(300));
  faults.completions_in_order = random.Chance(0.5);
  faults.break_per_message = 0.02 * random.Unit();
  faults.stall_per_message = 0.01 * random.Unit();
  faults.flip_per_message = 0.02 * random.Unit();
  faults.send_error_per_message = 0.02 * random.Unit();
  faults.duplicate_per_message = 0.1 * random.Unit();
  faults.stall_time = random.Between(milliseconds(200), seconds(10));
  return faults;
}

uint32_t MostTimes(FaultKind kind) {
  switch (kind) {
    case FaultKind::kWorkerCrash:
      return 8;
    case FaultKind::kWorkerDrain:
    case FaultKind::kPartition:
    case FaultKind::kFailpoint:
      return 6;
    case FaultKind::kSessionBreak:
      return 10;
    case FaultKind::kRouterCrash:
    case FaultKind::kRouterDrain:
      return 2;
    default:
      return 3;
  }
}

FaultPlan DrawPlan(Random random) {
  FaultPlan plan;
  const auto draw_times = [&](FaultKind kind) {
    plan.times[static_cast<size_t>(kind)] = Number(&random, 1, MostTimes(kind));
  };
  for (FaultKind kind : FaultSet::All().Kinds()) {
    if (kind < FaultKind::kMembership) draw_times(kind);
  }
  for (int i = 0; i < 6; ++i) {
    FailpointHit hit;
    hit.point = random.Next();
    hit.after = Number(&random, 1, uint64_t{1} << random.Below(6));
    hit.fails = random.Chance(0.5);
    plan.failpoints.push_back(hit);
  }
  plan.max_downtime = random.Between(milliseconds(50), seconds(5));
  plan.max_patience = random.Between(milliseconds(10), seconds(6));
  // Last, so that the rest of a seed stays as it was without them.
  draw_times(FaultKind::kMembership);
  draw_times(FaultKind::kBrokenWorker);
  return plan;
}

FaultSet DrawFaults(Random random) {
  FaultSet faults;
  const double rate = 0.5 * random.Unit();
  for (FaultKind kind : FaultSet::All().Kinds()) {
    if (random.Chance(rate)) faults.Add(kind);
  }
  return faults;
}

void RemoveHarmful(FaultSet* faults) {
  FaultSet harmful = FaultSet::All();
  harmful.Remove(FaultSet::Harmless());
  faults->Remove(harmful);
}

// Pools that one request fills, and prompts that hold their landings for
// seconds while answers of other priorities want to grow.
void MakeLandingsSlow(Random random, Scenario* scenario) {
  WorkloadShape& workload = scenario->workload;
  workload.requests = Number(&random, 6, 16);
  workload.max_choices = 1;
  workload.max_prompt_tokens = 160;
  workload.max_tokens = 200;
  workload.other_priority_rate = 0.7;
  workload.max_deadline = seconds(120);
  workload.arrivals = random.Between(milliseconds(300), seconds(4));
  const uint32_t least = MostBlocks(workload);
  if (scenario->decode_workers.size() > 2) scenario->decode_workers.resize(2);
  for (WorkerShape& shape : scenario->decode_workers) {
    shape.blocks = least + Number(&random, 0, 2);
    shape.max_context_tokens = ContextTokens(workload) + 16;
    shape.disaggregation = v1::DISAGGREGATION_ALWAYS;
    shape.length_quantile = 0;
    shape.tpot_target = Duration::zero();
    shape.landing_timeout = seconds(20);
  }
  for (WorkerShape& shape : scenario->prefill_workers) {
    shape.blocks = std::max(shape.blocks, 2 * least);
    shape.max_context_tokens = ContextTokens(workload) + 16;
    shape.step_time = random.Between(milliseconds(100), milliseconds(400));
    shape.step_target = Duration::zero();
  }
  if (random.Chance(0.7)) RemoveHarmful(&scenario->faults);
}

}  // namespace

bool Scenario::harmless() const { return calm() || plan.rolling_restart; }

bool Scenario::calm() const {
  FaultSet harmful = faults;
  harmful.Remove(FaultSet::Harmless());
  return harmful.empty();
}

std::string Scenario::ToString() const {
  return StrCat("seed ", seed, ": ", routers.size(), " routers, ",
                prefill_workers.size(), " P, ", decode_workers.size(), " D, ",
                workload.requests, " requests; ",
                plan.rolling_restart ? "rolling restart: " : "faults: ",
                faults.empty() ? "none" : faults.ToString());
}

void Scenario::Restrict(const Restriction& restriction) {
  salt = restriction.salt;
  faults.Remove(restriction.without);
  for (uint32_t& times : plan.times) {
    times = std::min(times, restriction.each.value_or(times));
  }
  auto at_most = [](auto* places, std::optional<uint32_t> most) {
    if (most.has_value() && *most < places->size()) places->resize(*most);
  };
  at_most(&routers, restriction.routers);
  at_most(&prefill_workers, restriction.prefill);
  at_most(&decode_workers, restriction.decode);
  if (restriction.requests.has_value()) only_requests = restriction.requests;
  control_requests = restriction.controls.value_or(control_requests);
}

Scenario Scenario::Draw(uint64_t seed) {
  Random random(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.workload = DrawWorkload(random.Fork());
  const bool tiny = random.Chance(0.2);
  const WorkloadShape& workload = scenario.workload;
  auto draw = [&](auto* shapes, uint64_t most, auto shape) {
    Random of_kind = random.Fork();
    const uint64_t size = DrawSize(&random, most);
    for (uint64_t i = 0; i < size; ++i) {
      shapes->push_back(shape(of_kind.Fork()));
    }
  };
  draw(&scenario.routers, 3,
       [&](Random of_shape) { return DrawRouter(workload, of_shape); });
  draw(&scenario.prefill_workers, 8, [&](Random of_shape) {
    return DrawPrefillWorker(workload, tiny, of_shape);
  });
  draw(&scenario.decode_workers, 8, [&](Random of_shape) {
    return DrawDecodeWorker(workload, tiny, of_shape);
  });
  scenario.fault_time = random.Between(seconds(2), seconds(12));
  scenario.workload.arrivals = scenario.fault_time * random.Below(10) / 10;
  if (random.Chance(0.3)) scenario.workload.arrivals = milliseconds(300);
  scenario.network = DrawNetwork(random.Fork());
  scenario.plan = DrawPlan(random.Fork());
  scenario.faults = DrawFaults(random.Fork());
  const double theme = random.Unit();
  if (theme < 0.1) {
    RemoveHarmful(&scenario.faults);
  } else if (theme < 0.15 && workload.versions == 1 &&
             scenario.prefill_workers.size() > 1 &&
             scenario.decode_workers.size() > 1) {
    scenario.plan.rolling_restart = true;
    scenario.faults = {};
    scenario.faults.Add(FaultKind::kWorkerDrain);
  } else if (theme < 0.2) {
    MakeLandingsSlow(random.Fork(), &scenario);
  }
  return scenario;
}

}  // namespace baton::simulation
