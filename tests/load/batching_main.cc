// What does continuous batching save? The same requests, whose answers are of
// very different lengths, once with static and once with continuous batching:
// steps of both, and the tokens per second of the latter beside those of a
// scheduler that wastes nothing, as the worker's own costs predict them. Exit
// code 1 when a bound is not kept.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cost_model/cost_model.h"
#include "router/client/cli/bench_runner.h"
#include "router/routing/worker_speed.h"
#include "tests/support/process_cluster.h"

namespace baton::testing {
namespace {

constexpr double kFewerSteps = 2.5;
constexpr double kOfPerfect = 0.9;

struct Setup {
  cli::BenchLoad load;
  uint32_t slots = 16;
  bool judged = true;  // tokens per second
};

struct Outcome {
  uint64_t steps = 0;
  uint64_t tokens = 0;
  double seconds = 0;
  StepCosts costs;  // at the end
  double prediction_error = 0;
  double tokens_per_s() const { return static_cast<double>(tokens) / seconds; }
};

absl::StatusOr<Outcome> Run(const Setup& setup, const std::string& batching) {
  ClusterOptions options;
  BATON_ASSIGN_OR_RETURN(options.model, SmolLm2Path());
  options.prefill = 0;
  options.worker_flags = {"--threads=1", "--kv-blocks=1200"};
  options.decode_flags = {"--disaggregation=never", "--tpot-target=0",
                          absl::StrCat("--max-sequences=", setup.slots),
                          "--batching=" + batching};
  BATON_ASSIGN_OR_RETURN(const auto cluster, ProcessCluster::Start(options));
  Client client(cluster->router().address());
  Process& worker = cluster->decode(0);
  BATON_ASSIGN_OR_RETURN(const double before,
                         worker.Metric("baton_steps_total"));
  const MonotonicTime start = MonotonicNow();
  const std::vector<cli::RequestRecord> records =
      cli::BenchRunner(&client, setup.load).Run();
  Outcome outcome;
  outcome.seconds = Seconds(MonotonicNow() - start);
  for (const cli::RequestRecord& record : records) {
    if (!record.error.empty()) return absl::InternalError(record.error);
    outcome.tokens += record.output_tokens;
  }
  BATON_ASSIGN_OR_RETURN(const double after,
                         worker.Metric("baton_steps_total"));
  outcome.steps = static_cast<uint64_t>(after - before);
  const v1::GetClusterInfoResponse info = cluster->Info();
  const v1::WorkerLoad& load = info.workers(0).load();
  BATON_ASSIGN_OR_RETURN(const auto costs, router::StepCostsOf(load));
  if (!costs.has_value()) return absl::InternalError("no costs are known");
  outcome.costs = *costs;
  outcome.prediction_error = load.prediction_error();
  BATON_RETURN_IF_ERROR(cluster->WaitPoolsIdle(std::chrono::seconds(10)));
  BATON_RETURN_IF_ERROR(cluster->Drain());
  return outcome;
}

// Every slot is taken by the next request in the step after the one that ends
// its answer; prompts are read beside the others.
struct Perfect {
  uint64_t steps = 0;
  double seconds = 0;
};
Perfect PerfectSchedule(const Setup& setup, const StepCosts& costs) {
  struct Slot {
    uint32_t position = 0;
    size_t left = 0;  // tokens
  };
  std::vector<Slot> slots(setup.slots);
  Perfect perfect;
  size_t next = 0;
  while (true) {
    StepShape step;
    for (Slot& slot : slots) {
      uint32_t rows = 1;
      if (slot.left == 0) {
        if (next == setup.load.num_prompts) continue;
        slot = {0, cli::OutputTokens(setup.load, next++)};
        rows = static_cast<uint32_t>(setup.load.input_tokens);
      }
      step.spans.push_back({slot.position, rows});
      ++step.logit_rows;
      slot.position += rows;
      --slot.left;
    }
    if (step.spans.empty()) return perfect;
    ++perfect.steps;
    perfect.seconds += StepSeconds(costs, step);
  }
}

void Print(const char* name, const Outcome& outcome) {
  std::printf(
      "  %s: %lu steps, %lu tokens in %.2f s, %.1f tokens/s (steps are "
      "predicted within %.0f %%)\n",
      name, outcome.steps, outcome.tokens, outcome.seconds,
      outcome.tokens_per_s(), 100 * outcome.prediction_error);
}

absl::Status Run(const Setup& setup) {
  std::printf(
      "batching: %zu requests, %u slots, answers geometric with mean "
      "%zu, at most %zu\n",
      setup.load.num_prompts, setup.slots, setup.load.output_tokens,
      setup.load.most_output_tokens);
  BATON_ASSIGN_OR_RETURN(const Outcome fixed, Run(setup, "static"));
  Print("static", fixed);
  BATON_ASSIGN_OR_RETURN(const Outcome continuous, Run(setup, "continuous"));
  Print("continuous", continuous);
  const Perfect perfect = PerfectSchedule(setup, continuous.costs);
  const double ratio =
      static_cast<double>(fixed.steps) / static_cast<double>(continuous.steps);
  const double perfect_rate =
      static_cast<double>(continuous.tokens) / perfect.seconds;
  const double share = continuous.tokens_per_s() / perfect_rate;
  std::printf(
      "  %.2f x fewer steps; a perfect scheduler: %lu steps, %.1f tokens/s; "
      "%.2f of it\n",
      ratio, perfect.steps, perfect_rate, share);
  if (fixed.tokens != continuous.tokens) {
    return absl::InternalError("the two made different answers");
  }
  if (ratio < kFewerSteps) return absl::InternalError("too many steps");
  if (setup.judged && share < kOfPerfect) {
    return absl::InternalError("too slow");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton::testing

int main(int argc, char** argv) {
  baton::testing::Setup setup;
  setup.load.num_prompts = 256;
  setup.load.input_tokens = 16;
  setup.load.output_tokens = 64;
  setup.load.most_output_tokens = 512;
  setup.load.vocabulary_size = 49152;
  setup.load.seed = 1;
  bool ordinary = false;
  CLI::App app("Compares continuous with static batching.");
  app.add_option("--num-prompts", setup.load.num_prompts, "requests")
      ->check(CLI::Range(1, 100000));
  app.add_option("--slots", setup.slots, "answers at once")
      ->check(CLI::Range(1, 256));
  app.add_option("--seed", setup.load.seed, "of prompts and lengths");
  app.add_flag("--ordinary", ordinary,
               "on a machine that does other things: speed is not judged");
  CLI11_PARSE(app, argc, argv);
  setup.judged = !ordinary;
  // Some always wait in the router.
  setup.load.max_concurrency = size_t{2} * setup.slots;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const absl::Status status = baton::testing::Run(setup);
  if (status.ok()) return 0;
  std::printf("FAILED: %s\n", std::string(status.message()).c_str());
  return 1;
}
