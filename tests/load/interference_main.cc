// Does reading prompts disturb those who decode? Four clients decode while
// long prompts arrive, with prefill and decode apart and with two aggregated
// workers. Prints the figures; exit code 1 when a bound is not kept.
#include <algorithm>
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "common/base/status_macros.h"
#include "tests/load/core_pinning.h"
#include "tests/load/interference.h"

namespace baton::testing {
namespace {

constexpr double kApartFactor = 1.3;
constexpr double kOverloadFactor = 1.5;
// A prompt that arrives so often is more than the workers can read.
constexpr int kOverload = 2;

struct Times {
  Duration phase = std::chrono::seconds(24);
  Duration prompt_every = std::chrono::seconds(4);
  bool judged = true;  // the figures in milliseconds
  bool apart = true, aggregated = true;
};

struct Verdict {
  bool good = true;
  void Check(bool kept, const char* bound) {
    if (kept) return;
    std::printf("  NOT KEPT: %s\n", bound);
    good = false;
  }
};

void Print(const char* phase, const RhythmFigures& f) {
  std::printf(
      "  %s: ITL p50 %.2f, p99 %.2f, most %.2f ms (%zu gaps, a step is "
      "predicted to take %.2f ms), %.1f tokens/s\n",
      phase, f.gap_p50_ms, f.gap_p99_ms, f.gap_most_ms, f.gaps,
      f.decode_step_ms, f.tokens_per_s);
  if (f.answered + f.refused + f.late == 0) return;
  std::printf(
      "    prompts: %lu answered (TTFT p50 %.0f, p99 %.0f ms, %u chunks or "
      "more), %lu refused, %lu late\n",
      f.answered, f.ttft_p50_ms, f.ttft_p99_ms, f.fewest_chunks, f.refused,
      f.late);
  std::printf(
      "      medians: queue %.1f, prefill %.1f (%.1f predicted with nothing "
      "beside it), transfer %.1f, to the router and back %.1f ms\n",
      f.queue_ms, f.prefill_ms, f.alone_ms, f.transfer_ms, f.way_ms);
}

uint32_t LeastChunks(uint32_t tokens, uint32_t step_tokens) {
  return (tokens + step_tokens - 1) / step_tokens;
}

struct Phases {
  RhythmFigures quiet, beside;  // without prompts, beside 900-token ones
};

absl::StatusOr<Phases> RunPhases(InterferenceCluster* cluster,
                                 const Times& times) {
  Phases phases;
  BATON_ASSIGN_OR_RETURN(phases.quiet, cluster->Run(times.phase, nullptr));
  Print("undisturbed", phases.quiet);
  PromptArrivals steady{.every = times.prompt_every};
  if (!times.judged) {
    // A busy machine may be too slow for that.
    BATON_ASSIGN_OR_RETURN(const Duration read,
                           cluster->ReadTime(steady.tokens));
    steady.every = std::max(steady.every, 2 * read);
    steady.deadline = std::max(steady.deadline, 10 * read);
  }
  BATON_ASSIGN_OR_RETURN(phases.beside, cluster->Run(times.phase, &steady));
  Print("beside 900-token prompts", phases.beside);
  return phases;
}

absl::StatusOr<bool> RunApart(const Times& times) {
  Verdict verdict;
  BATON_ASSIGN_OR_RETURN(const auto cluster,
                         InterferenceCluster::Start(Topology::kApart));
  std::printf("prefill and decode apart\n");
  BATON_ASSIGN_OR_RETURN(const Phases phases, RunPhases(cluster.get(), times));
  const auto& [quiet, beside] = phases;
  std::printf("    p99 is %.2f of the undisturbed\n",
              beside.gap_p99_ms / quiet.gap_p99_ms);
  const PromptArrivals heavy{.tokens = 1800,
                             .every = times.prompt_every / 2,
                             .deadline = std::chrono::seconds(10)};
  BATON_ASSIGN_OR_RETURN(const RhythmFigures more,
                         cluster->Run(times.phase, &heavy));
  Print("beside 1800-token prompts, twice as often", more);
  // The machine may be fast enough for that, so offer more than it can read.
  PromptArrivals flood = heavy;
  BATON_ASSIGN_OR_RETURN(const Duration read, cluster->ReadTime(flood.tokens));
  flood.deadline = std::max<Duration>(std::chrono::seconds(5), times.phase / 4);
  if (!times.judged) flood.deadline = std::max(flood.deadline, 4 * read);
  flood.every = std::min(flood.every, read / kOverload);
  BATON_ASSIGN_OR_RETURN(const RhythmFigures overload,
                         cluster->Run(times.phase, &flood));
  Print("beside twice the prompts that can be read", overload);
  std::printf("    p99 is %.2f and %.2f of the undisturbed\n",
              more.gap_p99_ms / quiet.gap_p99_ms,
              overload.gap_p99_ms / quiet.gap_p99_ms);
  BATON_ASSIGN_OR_RETURN(const double by_decode,
                         cluster->PrefilledByDecodeWorkers());
  verdict.Check(beside.answered > 0 && beside.refused + beside.late == 0,
                "every prompt is answered");
  verdict.Check(
      beside.fewest_chunks >= LeastChunks(900, cluster->step_tokens()),
      "a step has no more than its tokens of a prompt");
  verdict.Check(overload.answered > 0,
                "some prompts of an overload are answered");
  verdict.Check(overload.refused > 0, "overload is refused");
  verdict.Check(by_decode == 0, "the decode worker reads no prompts");
  if (times.judged) {
    verdict.Check(beside.gap_p99_ms <= kApartFactor * quiet.gap_p99_ms,
                  "ITL beside prompts");
    verdict.Check(more.gap_p99_ms <= kOverloadFactor * quiet.gap_p99_ms &&
                      overload.gap_p99_ms <= kOverloadFactor * quiet.gap_p99_ms,
                  "ITL under overload");
  }
  BATON_RETURN_IF_ERROR(cluster->Finish());
  return verdict.good;
}

absl::StatusOr<bool> RunAggregated(const Times& times) {
  Verdict verdict;
  BATON_ASSIGN_OR_RETURN(const auto cluster,
                         InterferenceCluster::Start(Topology::kAggregated));
  std::printf("two aggregated workers\n");
  BATON_ASSIGN_OR_RETURN(const Phases phases, RunPhases(cluster.get(), times));
  const auto& [quiet, beside] = phases;
  const double chunk_ms = cluster->step_target_ms() - quiet.decode_step_ms;
  std::printf("    p99 is %.2f ms more than undisturbed, a chunk is %.2f ms\n",
              beside.gap_p99_ms - quiet.gap_p99_ms, chunk_ms);
  verdict.Check(beside.answered > 0 && beside.refused + beside.late == 0,
                "every prompt is answered");
  verdict.Check(
      beside.fewest_chunks >= LeastChunks(900, cluster->step_tokens()),
      "a step has no more than its tokens of a prompt");
  if (times.judged) {
    verdict.Check(beside.gap_p99_ms <= quiet.gap_p99_ms + chunk_ms,
                  "ITL beside prompts");
  }
  BATON_RETURN_IF_ERROR(cluster->Finish());
  return verdict.good;
}

absl::Status Run(const Times& times) {
  if (UsableCores().size() < 2) {
    std::printf("one core only: nothing is pinned\n");
  }
  bool good = true;
  if (times.apart) {
    BATON_ASSIGN_OR_RETURN(const bool kept, RunApart(times));
    good = good && kept;
  }
  if (times.aggregated) {
    BATON_ASSIGN_OR_RETURN(const bool kept, RunAggregated(times));
    good = good && kept;
  }
  if (good) return absl::OkStatus();
  return absl::InternalError("reading prompts disturbs those who decode");
}

}  // namespace
}  // namespace baton::testing

int main(int argc, char** argv) {
  int phase_s = 24, every_ms = 4000;
  bool ordinary = false;
  std::string only;
  CLI::App app("Measures what prompts do to those who decode beside them.");
  app.add_option("--phase-seconds", phase_s, "of each of the six phases")
      ->check(CLI::Range(1, 600));
  app.add_option("--every-ms", every_ms, "between 900-token prompts")
      ->check(CLI::Range(10, 60000));
  app.add_option("--only", only, "one arm")
      ->check(CLI::IsMember({"apart", "aggregated"}));
  app.add_flag("--ordinary", ordinary,
               "a short run on a machine that does other things: times are "
               "not judged");
  CLI11_PARSE(app, argc, argv);
  if (ordinary) phase_s = 4, every_ms = 1000;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const absl::Status status =
      baton::testing::Run({.phase = std::chrono::seconds(phase_s),
                           .prompt_every = std::chrono::milliseconds(every_ms),
                           .judged = !ordinary,
                           .apart = only != "aggregated",
                           .aggregated = only != "apart"});
  if (status.ok()) return 0;
  std::printf("FAILED: %s\n", std::string(status.message()).c_str());
  return 1;
}
