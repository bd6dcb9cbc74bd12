// Requests of all kinds at once on a real cluster, for as long as asked: every
// answer equals that of the quiet cluster, and nothing leaks. Prints the
// figures; exit code 1 when something was wrong.
#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <thread>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/load/mixed.h"

namespace baton::testing {
namespace {

constexpr double kGrowthKib = 8 << 10;  // in the second half
// Before that, allocators and caches still grow, and pools may not be full.
constexpr auto kLong = std::chrono::minutes(5);

void PrintProgress(double seconds, const MixedCounts& counts) {
  std::printf(
      "mixed: %.0f s, %lu as when quiet, %lu cancelled, %lu refused, "
      "%lu wrong, %.1f tokens/s\n",
      seconds, counts.all_completed(), counts.cancelled, counts.refused,
      counts.wrong,
      static_cast<double>(counts.tokens) / std::max(seconds, 1.0));
}

absl::Status Run(const MixedOptions& options, Duration time,
                 Duration progress) {
  BATON_ASSIGN_OR_RETURN(const auto load, MixedLoad::Start(options));
  const MonotonicTime start = MonotonicNow();
  const MonotonicTime end = start + time;
  MonotonicTime next_line = start + progress;
  while (MonotonicNow() < end) {
    std::this_thread::sleep_for(
        std::min<Duration>(std::chrono::seconds(1), end - MonotonicNow()));
    const double seconds = Seconds(MonotonicNow() - start);
    load->SampleMemory(seconds);
    if (MonotonicNow() < next_line) continue;
    next_line += progress;
    PrintProgress(seconds, load->counts());
  }
  load->Stop();
  const MixedCounts counts = load->counts();
  PrintProgress(Seconds(MonotonicNow() - start), counts);
  for (const auto& [kind, count] : counts.completed) {
    std::printf("  %s: %lu\n", kind.c_str(), count);
  }
  bool idle = false;  // something that is to be seen here did not happen
  for (const auto& [metric, label] :
       std::initializer_list<std::pair<const char*, const char*>>{
           {"baton_preemptions_total", ""},
           {"baton_preempted_returns_total", "way=\"push\""},
           {"baton_preempted_returns_total", "way=\"recompute\""},
           {"baton_fetched_blocks_total", ""},
           {"baton_recomputed_tokens_total", ""},
           {"baton_drafted_tokens_total", ""},
           {"baton_accepted_draft_tokens_total", ""},
           {"baton_speculation_saved_steps_total", ""}}) {
    BATON_ASSIGN_OR_RETURN(const double value,
                           load->DecodeMetric(metric, label));
    std::printf("  %s%s%s: %.0f\n", metric, *label == 0 ? "" : " ", label,
                value);
    idle = idle || value == 0;
  }
  bool grew = false;
  for (const auto& [name, trace] : load->memory()) {
    std::printf("  %s: %.0f KiB, grew by %.0f KiB in the second half\n",
                name.c_str(), trace.last_kib(), trace.GrowthKib());
    grew = grew || trace.GrowthKib() > kGrowthKib;
  }
  for (const std::string& failure : load->failures()) {
    std::printf("  WRONG: %s\n", failure.c_str());
  }
  BATON_RETURN_IF_ERROR(load->Finish());
  std::printf("  every pool is empty, every process ended with 0\n");
  if (counts.wrong > 0) {
    return absl::InternalError("answers differ from those of a quiet cluster");
  }
  if (counts.completed.size() < 8 || counts.cancelled == 0) {
    return absl::InternalError("some kind of request never came to its end");
  }
  if (time < kLong) return absl::OkStatus();
  if (grew) return absl::InternalError("memory grows");
  if (idle)
    return absl::InternalError(
        "no preemption, none of a way back, or no guess was right");
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton::testing

int main(int argc, char** argv) {
  baton::testing::MixedOptions options;
  int seconds = 1800, progress_s = 30;
  CLI::App app("Sends requests of all kinds and compares every answer.");
  app.add_option("--seconds", seconds, "that it lasts")
      ->check(CLI::Range(1, 86400));
  app.add_option("--progress-seconds", progress_s, "between lines")
      ->check(CLI::Range(1, 3600));
  app.add_option("--clients", options.clients, "at once")
      ->check(CLI::Range(1, 256));
  app.add_option("--each", options.each, "different requests of a kind")
      ->check(CLI::Range(1, 5));
  app.add_option("--cancel-share", options.cancel_share, "of the requests")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--seed", options.seed, "of the order");
  app.add_option("--routers", options.routers, "side by side")
      ->check(CLI::Range(1, 8));
  app.add_option("--prefill", options.prefill, "workers")
      ->check(CLI::Range(0, 16));
  app.add_option("--decode", options.decode, "workers")
      ->check(CLI::Range(1, 16));
  app.add_option("--decode-flag", options.decode_flags,
                 "of the decode workers, repeatable: --decode-flag=--x=y")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const absl::Status status = baton::testing::Run(
      options, std::chrono::seconds(seconds), std::chrono::seconds(progress_s));
  if (status.ok()) return 0;
  std::printf("FAILED: %s\n", std::string(status.message()).c_str());
  return 1;
}
