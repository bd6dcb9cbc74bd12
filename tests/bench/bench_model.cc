// baton-bench-model: tokens per second of one model on this machine, prefill
// and decode apart, beside what the machine's memory and arithmetic allow.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/model_file/gguf.h"
#include "kernels/cpu/cpu_backend.h"
#include "nlohmann/json.hpp"
#include "tests/bench/foreign_load.h"
#include "tests/bench/machine_probes.h"
#include "tests/bench/model_bench.h"
#include "tests/bench/roofline.h"
#include "tests/support/model_under_test.h"

namespace baton {
namespace {

using nlohmann::json;

struct BenchFlags {
  std::string model;
  std::vector<uint32_t> prompts = {512};
  uint32_t generate = 128;
  std::vector<uint32_t> batches = {1};
  std::vector<uint32_t> depths = {0};
  uint32_t chunk = 512;
  std::vector<int> threads = {
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))};
  std::vector<std::string> isas = {"auto"};
  std::string weights = "file";
  std::vector<std::string> kv_types = {"f16"};
  uint32_t repetitions = 3;
  uint32_t foreign = 0;
  bool json = false;
  bool profile = false;
};

double Quantile(std::vector<double> values, double share) {
  const auto index =
      std::min(values.size() - 1, static_cast<size_t>(share * values.size()));
  const auto at = values.begin() + static_cast<ptrdiff_t>(index);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double Median(const std::vector<double>& values) {
  return Quantile(values, 0.5);
}

// One loaded model and what its backend can do at best.
struct Setup {
  ModelUnderTest loaded;
  ProfilingBackend* profile = nullptr;  // the loaded backend, when asked for
  std::unique_ptr<ModelBench> bench;
  std::unique_ptr<Roofline> roofline;
  MachinePeaks peaks;
};

// One line of the report.
struct Case {
  const Setup* setup;
  bool decode;
  uint32_t tokens;  // of the prompt, or steps to decode
  uint32_t batch;
  uint32_t depth;
  std::vector<double> seconds = {};      // per repetition
  std::vector<double> limits = {};       // the same, as the roofline allows
  std::vector<double> steps = {};        // each decode step of all repetitions
  std::vector<KernelTime> profile = {};  // of the last repetition

  double count() const { return double{1} * tokens * batch; }
  std::string Name() const {
    std::string name = StrCat(decode ? "tg" : "pp", tokens);
    if (batch > 1) name += StrCat(" x ", batch);
    if (depth > 0) name += StrCat(" @ d", depth);
    return name;
  }
};

absl::StatusOr<Setup> Load(const BenchFlags& flags, kernels::Isa isa,
                           int threads, const std::string& kv_type) {
  BATON_ASSIGN_OR_RETURN(
      auto backend, kernels::MakeCpuBackend({.isa = isa, .threads = threads}));
  Setup setup;
  if (flags.profile) {
    auto profile = std::make_unique<ProfilingBackend>(std::move(backend));
    setup.profile = profile.get();
    backend = std::move(profile);
  }
  ModelOptions options;
  options.kv_type = *kernels::KvTypeNamed(kv_type);
  options.load.format = *ParseWeightFormat(flags.weights);
  BATON_ASSIGN_OR_RETURN(
      setup.loaded,
      ModelUnderTest::Load(flags.model, std::move(backend), options));
  const uint32_t rows =
      *std::max_element(flags.batches.begin(), flags.batches.end());
  setup.bench = std::make_unique<ModelBench>(*setup.loaded.model, rows,
                                             flags.chunk, setup.profile);
  BATON_ASSIGN_OR_RETURN(const auto file, GgufFile::Open(flags.model));
  setup.roofline = std::make_unique<Roofline>(*file, options.load.format,
                                              *setup.loaded.model);
  return setup;
}

std::vector<Case> PlanCases(const BenchFlags& flags,
                            const std::vector<Setup>& setups) {
  std::vector<Case> cases;
  for (const Setup& setup : setups) {
    for (const uint32_t depth : flags.depths) {
      for (const uint32_t prompt : flags.prompts) {
        if (prompt > 0) cases.push_back({&setup, false, prompt, 1, depth});
      }
      for (const uint32_t batch : flags.batches) {
        if (flags.generate == 0) continue;
        cases.push_back({&setup, true, flags.generate, batch, depth});
      }
    }
  }
  return cases;
}

// Takes the kernels' times of a run; what is left of its seconds went into
// sampling and the engine.
void TakeProfile(double seconds, Case* test) {
  const ProfilingBackend* profile = test->setup->profile;
  if (profile == nullptr) return;
  test->profile.assign(profile->times().begin(), profile->times().end());
  KernelTime rest = {.kernel = "sampling", .seconds = seconds};
  for (const KernelTime& time : test->profile) rest.seconds -= time.seconds;
  rest.calls = test->decode ? test->tokens : 1;
  test->profile.push_back(rest);
}

// Runs a case once and puts the roofline of the same moment beside it.
absl::Status RunOnce(const BenchFlags& flags, Case* test) {
  const Setup& setup = *test->setup;
  const int threads = setup.loaded.backend->threads();
  const double bandwidth =
      ReadBandwidth(static_cast<size_t>(
                        setup.roofline->DecodeBytes(test->batch, test->depth)),
                    threads);
  const ForeignLoad foreign(flags.foreign);
  if (test->decode) {
    BATON_ASSIGN_OR_RETURN(
        const std::vector<double> steps,
        setup.bench->Decode(test->batch, test->depth, test->tokens));
    test->steps.insert(test->steps.end(), steps.begin(), steps.end());
    double sum = 0, limit = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      sum += steps[i];
      limit += setup.roofline->DecodeSeconds(
          test->batch, test->depth + static_cast<uint32_t>(i), setup.peaks,
          bandwidth);
    }
    TakeProfile(sum, test);
    test->seconds.push_back(sum);
    test->limits.push_back(limit);
    return absl::OkStatus();
  }
  BATON_ASSIGN_OR_RETURN(const double seconds,
                         setup.bench->Prefill(test->tokens, test->depth));
  TakeProfile(seconds, test);
  test->seconds.push_back(seconds);
  test->limits.push_back(setup.roofline->PrefillSeconds(
      test->tokens, test->depth, flags.chunk, setup.peaks, bandwidth));
  return absl::OkStatus();
}

struct Figures {
  double median, lowest, highest;  // tokens per second
  double limit;
  double step_p50 = 0, step_p99 = 0;  // seconds of a decode step
};

Figures Summarize(const Case& test) {
  const double count = test.count();
  const auto [least, most] =
      std::minmax_element(test.seconds.begin(), test.seconds.end());
  Figures figures = {count / Median(test.seconds), count / *most,
                     count / *least, count / Median(test.limits)};
  if (test.decode) {
    figures.step_p50 = Median(test.steps);
    figures.step_p99 = Quantile(test.steps, 0.99);
  }
  return figures;
}

void PrintTable(const std::vector<Case>& cases,
                const std::vector<Setup>& setups) {
  for (const Setup& setup : setups) {
    std::printf(
        "%s, %d threads: int8 %.0f GOPS, fp32 %.0f GFLOPS, hand-over "
        "%.2f us\n",
        std::string(setup.loaded.backend->name()).c_str(),
        setup.loaded.backend->threads(), setup.peaks.int8 * 1e-9,
        setup.peaks.fp32 * 1e-9, setup.peaks.barrier_seconds * 1e6);
  }
  std::printf(
      "\n| backend      | threads |   kv | test             |  tokens/s | "
      "lowest..highest     | of limit | step p50, p99 ms |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const Case& test : cases) {
    const Figures f = Summarize(test);
    const ModelUnderTest& loaded = test.setup->loaded;
    std::printf(
        "| %-12s | %7d | %4s | %-16s | %9.2f | %9.2f..%-9.2f | %6.0f %% | %s "
        "|\n",
        std::string(loaded.backend->name()).c_str(), loaded.backend->threads(),
        std::string(KvTypeName(loaded.model->kv_layout().type)).c_str(),
        test.Name().c_str(), f.median, f.lowest, f.highest,
        100 * f.median / f.limit,
        test.decode ? absl::StrFormat("%7.3f, %7.3f", f.step_p50 * 1e3,
                                      f.step_p99 * 1e3)
                          .c_str()
                    : "                ");
  }
}

// Per prompt, or per decode step.
void PrintProfile(const std::vector<Case>& cases) {
  for (const Case& test : cases) {
    const double runs = test.decode ? test.tokens : 1;
    std::printf(
        "\n%s, %s:\n| kernels   |  calls | ms       | share | GB/s |\n"
        "|---|---|---|---|---|\n",
        test.Name().c_str(), test.decode ? "one step" : "the prompt");
    for (const KernelTime& time : test.profile) {
      std::printf("| %-9s | %6.0f | %8.3f | %3.0f %% | %4.1f |\n",
                  std::string(time.kernel).c_str(),
                  static_cast<double>(time.calls) / runs,
                  1e3 * time.seconds / runs,
                  100 * time.seconds / test.seconds.back(),
                  time.seconds > 0 ? 1e-9 * time.bytes / time.seconds : 0);
    }
  }
}

void PrintJson(const std::vector<Case>& cases, uint32_t foreign) {
  json report = json::array();
  for (const Case& test : cases) {
    const Figures f = Summarize(test);
    const ModelUnderTest& loaded = test.setup->loaded;
    const MachinePeaks& peaks = test.setup->peaks;
    report.push_back(
        {{"model", loaded.model->config().name},
         {"backend", std::string(loaded.backend->name())},
         {"threads", loaded.backend->threads()},
         {"kv_type", std::string(KvTypeName(loaded.model->kv_layout().type))},
         {"test", test.Name()},
         {"tokens", test.tokens},
         {"batch", test.batch},
         {"depth", test.depth},
         {"tokens_per_second", f.median},
         {"tokens_per_second_lowest", f.lowest},
         {"tokens_per_second_highest", f.highest},
         {"limit_tokens_per_second", f.limit},
         {"step_seconds_p50", f.step_p50},
         {"step_seconds_p99", f.step_p99},
         {"foreign_processes", foreign},
         {"probe_int8_ops_per_second", peaks.int8},
         {"probe_fp32_flops_per_second", peaks.fp32},
         {"probe_barrier_seconds", peaks.barrier_seconds}});
    for (const KernelTime& time : test.profile) {
      report.back()["profile"].push_back({{"kernels", std::string(time.kernel)},
                                          {"calls", time.calls},
                                          {"seconds", time.seconds},
                                          {"bytes", time.bytes}});
    }
  }
  std::printf("%s\n", report.dump(2).c_str());
}

absl::Status RunAll(const BenchFlags& flags) {
  std::vector<Setup> setups;
  for (const std::string& isa_name : flags.isas) {
    BATON_ASSIGN_OR_RETURN(const kernels::Isa isa, kernels::ParseIsa(isa_name));
    for (const int threads : flags.threads) {
      for (const std::string& kv_type : flags.kv_types) {
        BATON_ASSIGN_OR_RETURN(Setup setup, Load(flags, isa, threads, kv_type));
        setup.peaks = ProbePeaks(isa, threads);
        setups.push_back(std::move(setup));
      }
    }
  }
  std::vector<Case> cases = PlanCases(flags, setups);
  // Every case once before any case again: a slow minute of the machine hits
  // all of them.
  for (uint32_t i = 0; i <= flags.repetitions; ++i) {
    for (size_t c = 0; c < cases.size(); ++c) {
      std::fprintf(stderr, "\r%s %u/%u: %-40s", i == 0 ? "warm-up" : "run", i,
                   flags.repetitions, cases[c].Name().c_str());
      BATON_RETURN_IF_ERROR(RunOnce(flags, &cases[c]));
    }
    if (i == 0) {
      for (Case& test : cases) {
        test.seconds.clear();
        test.limits.clear();
        test.steps.clear();
      }
    }
  }
  std::fprintf(stderr, "\r%-60s\r", "");
  flags.json ? PrintJson(cases, flags.foreign) : PrintTable(cases, setups);
  if (flags.profile && !flags.json) PrintProfile(cases);
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::BenchFlags flags;
  CLI::App app(
      "Measures tokens per second of a model: prefill of a prompt (pp) and "
      "generation (tg), the median over repetitions that take turns, beside "
      "the limit of the machine's memory and arithmetic probed in the same "
      "run.");
  app.add_option("-m,--model,file", flags.model, "GGUF file")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("-p,--prompt", flags.prompts, "prompt tokens, a list")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("-n,--gen,--generate", flags.generate, "tokens to generate")
      ->capture_default_str();
  app.add_option("-b,--batch", flags.batches, "sequences decoded together")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("-d,--depth", flags.depths, "tokens cached before, a list")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("-c,--chunk", flags.chunk, "prefill chunk in tokens")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("-t,--threads", flags.threads, "threads, a list")
      ->delimiter(',')
      ->check(CLI::Range(1, baton::kernels::kMaxThreads))
      ->capture_default_str();
  app.add_option("--isa", flags.isas,
                 "auto, scalar, avx2, avxvnni, avx512, amx; a list")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--weights", flags.weights, "weights in memory: file or int8")
      ->check(CLI::IsMember({"file", "int8"}))
      ->capture_default_str();
  app.add_option("--kv", flags.kv_types, "KV cache types, a list")
      ->delimiter(',')
      ->check(CLI::IsMember({"f16", "f32", "i8"}))
      ->capture_default_str();
  app.add_option("-r,--repetitions", flags.repetitions, "of each test")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--foreign", flags.foreign,
                 "busy processes of others beside the measured work")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app.add_flag("--json", flags.json, "print JSON");
  app.add_flag("--profile", flags.profile,
               "print seconds and bytes by class of kernels");
  CLI11_PARSE(app, argc, argv);

  const absl::Status status = baton::RunAll(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "\nbaton-bench-model: %s\n",
               std::string(status.message()).c_str());
  return 2;
}
