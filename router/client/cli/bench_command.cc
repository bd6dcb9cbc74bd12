#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "common/base/shutdown_signals.h"
#include "common/config/config_parser.h"
#include "router/client/cli/bench_report.h"
#include "router/client/cli/bench_runner.h"
#include "router/client/cli/command.h"
#include "router/client/cli/router_flags.h"
#include "router/client/cli/terminal.h"

namespace baton::cli {
namespace {

constexpr size_t kOpenLoopConcurrency = 256;
constexpr size_t kProgressCells = 30;

// Shows how many requests are done until it is destroyed.
class ProgressThread {
 public:
  ProgressThread(const BenchRunner& runner, size_t total)
      : thread_([this, &runner, total] {
          ProgressLine line(stderr);
          const MonotonicTime start = MonotonicNow();
          while (!stop_) {
            const MonotonicTime now = MonotonicNow();
            line.Show(
                ProgressBar(runner.done(), total, now - start, kProgressCells),
                now);
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
          }
        }) {}
  ~ProgressThread() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 31) ^ device();
}

}  // namespace

int RunBench(int argc, const char* const* argv) {
  RouterFlags flags;
  BenchLoad load;
  std::string lengths = "fixed";
  size_t most_output_tokens = 512;
  int warmup = 1;
  bool json = false;
  ConfigParser parser("baton bench",
                      "Measures a running cluster with random prompts: a "
                      "closed loop of --concurrency requests, or an open loop "
                      "of --request-rate Poisson arrivals.");
  flags.AddTo(&parser);
  parser.AddInteger("num-prompts", &load.num_prompts, 1, 1'000'000,
                    "requests to send");
  parser.AddInteger("input-len", &load.input_tokens, 1, 1 << 20,
                    "tokens of each prompt");
  parser.AddInteger("output-len", &load.output_tokens, 1, 1 << 20,
                    "tokens of each answer");
  parser.AddChoice("output-lengths", &lengths, {"fixed", "geometric"},
                   "all the same, or geometric with output-len as mean");
  parser.AddInteger("output-len-max", &most_output_tokens, 1, 1 << 20,
                    "longest answer where lengths are geometric");
  parser.AddInteger("concurrency", &load.max_concurrency, 1, 4096,
                    "requests in flight (open loop: at most, 256 unless set)");
  parser.AddReal("request-rate", &load.request_rate, 1e-3, 1e6,
                 "open loop: requests per second");
  parser.AddReal("temperature", &load.temperature, 0, 2, "0 is greedy");
  parser.AddInteger("seed", &load.seed, 0, INT64_MAX,
                    "of prompts and arrivals; differs per run unless set");
  parser.AddInteger("warmup", &warmup, 0, 1000,
                    "requests sent first and not counted");
  parser.AddSwitch("json", &json,
                   "print the result as JSON, keys as in vllm bench serve");
  parser.ParseOrExit(argc, argv);
  if (load.request_rate && !parser.Given("concurrency")) {
    load.max_concurrency = kOpenLoopConcurrency;
  }
  if (lengths == "geometric") load.most_output_tokens = most_output_tokens;
  if (!parser.Given("seed")) load.seed = RandomSeed();

  std::mutex mutex;
  BenchRunner* running = nullptr;
  bool interrupted = false;
  ShutdownSignals signals([&](int) {
    std::lock_guard lock(mutex);
    if (interrupted || running == nullptr) std::_Exit(130);
    interrupted = true;
    running->Stop();
  });
  const auto watch = [&](BenchRunner* runner) {
    std::lock_guard lock(mutex);
    running = runner;
  };
  const std::string& router = flags.router;
  Client client = flags.Connect();
  const auto models = client.ListModels();
  if (!models.ok()) return Fail(models.status(), router);
  if (models->models().empty()) {
    return Fail(absl::UnavailableError("the router serves no model yet"),
                router);
  }
  load.vocabulary_size = models->models(0).vocabulary_size();
  if (load.vocabulary_size == 0) {
    return Fail(absl::InternalError("the model has no vocabulary"), router);
  }

  BenchLoad warmup_load = load;
  warmup_load.num_prompts = static_cast<size_t>(warmup);
  warmup_load.seed = ~load.seed;
  warmup_load.request_rate.reset();
  BenchRunner warmup_runner(&client, warmup_load);
  for (const RequestRecord& record : warmup_runner.Run()) {
    if (record.error.empty()) continue;
    std::fprintf(stderr, "baton: %s\n", record.error.c_str());
    return 1;
  }

  BenchRunner runner(&client, load);
  watch(&runner);
  const MonotonicTime start = MonotonicNow();
  std::vector<RequestRecord> records;
  {
    ProgressThread progress(runner, load.num_prompts);
    records = runner.Run();
  }
  const Duration duration = MonotonicNow() - start;
  watch(nullptr);
  const BenchReport report = Summarize({.model_id = models->models(0).id(),
                                        .num_prompts = load.num_prompts,
                                        .request_rate = load.request_rate,
                                        .max_concurrency = load.max_concurrency,
                                        .seed = load.seed},
                                       records, duration);
  std::fputs((json ? ReportJson(report) : FormatReport(report)).c_str(),
             stdout);
  if (json && report.failed > 0) {
    std::fprintf(stderr, "baton: %s\n", report.first_error.c_str());
  }
  if (interrupted) return 130;
  return report.failed == 0 ? 0 : 1;
}

}  // namespace baton::cli
