// baton-bench-model: tokens per second of one model on this machine, prefill
// and decode apart, in the manner of llama-bench.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "common/engine/engine.h"
#include "common/model_file/gguf.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/generation.h"
#include "tests/support/model_under_test.h"

namespace baton {
namespace {

struct BenchFlags {
  std::string model;
  std::vector<uint32_t> prompts = {512};
  uint32_t generate = 128;
  std::vector<uint32_t> batches = {1};
  uint32_t depth = 0;
  uint32_t chunk = 512;
  std::vector<int> threads = {
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))};
  std::vector<std::string> isas = {"auto"};
  std::string kv_type = "f16";
  uint32_t repetitions = 3;
};

struct Speed {
  double mean = 0;  // tokens per second
  double deviation = 0;
};

Speed Summarize(const std::vector<double>& speeds) {
  Speed speed;
  for (const double s : speeds) speed.mean += s / speeds.size();
  double squares = 0;
  for (const double s : speeds) squares += (s - speed.mean) * (s - speed.mean);
  if (speeds.size() > 1)
    speed.deviation = std::sqrt(squares / (speeds.size() - 1));
  return speed;
}

std::shared_ptr<const SamplingParams> Greedy() {
  const auto params = std::make_shared<SamplingParams>();
  params->temperature = 0;
  return params;
}

// Feeds the same text to every sequence and times the steps.
class Bench {
 public:
  Bench(const Model& model, uint32_t max_rows)
      : model_(model),
        engine_(&model, max_rows),
        vocabulary_(static_cast<uint32_t>(model.config().vocabulary)) {}

  // Seconds to prefill `tokens` positions and draw once.
  double Prefill(uint32_t tokens, uint32_t chunk) {
    const SequenceKv kv(model_.kv_layout(), tokens);
    return Feed(kv, 0, tokens, chunk, /*draw_at_end=*/true);
  }

  // Seconds for `steps` steps of `batch` sequences that hold `depth` tokens.
  double Decode(uint32_t batch, uint32_t depth, uint32_t steps,
                uint32_t chunk) {
    std::vector<SequenceKv> kv;
    for (uint32_t i = 0; i < batch; ++i) {
      kv.emplace_back(model_.kv_layout(), depth + steps);
      Feed(kv.back(), 0, depth, chunk, /*draw_at_end=*/false);
    }
    double seconds = 0;
    std::vector<TokenId> next = PseudoText(batch, vocabulary_, 2);
    for (uint32_t step = 0; step < steps; ++step) {
      std::vector<StepSpan> spans;
      for (uint32_t i = 0; i < batch; ++i) {
        spans.push_back(
            {{next[i]}, depth + step, kv[i].blocks(), {Draw(depth + step)}});
      }
      const StepResult result = Run(spans, &seconds);
      for (uint32_t i = 0; i < batch; ++i) {
        next[i] = result.spans[i].draws.front().token;
      }
    }
    return seconds;
  }

 private:
  DrawRequest Draw(uint32_t position) const {
    DrawRequest draw;
    draw.params = greedy_;
    draw.position = position + 1;
    return draw;
  }

  double Feed(const SequenceKv& kv, uint32_t first, uint32_t tokens,
              uint32_t chunk, bool draw_at_end) {
    const std::vector<TokenId> text = PseudoText(tokens, vocabulary_, 1);
    double seconds = 0;
    for (uint32_t done = 0; done < tokens; done += chunk) {
      const uint32_t rows = std::min(chunk, tokens - done);
      StepSpan span{{text.begin() + done, text.begin() + done + rows},
                    first + done,
                    kv.blocks(),
                    {}};
      if (draw_at_end && done + rows == tokens) {
        span.draws.push_back(Draw(done + rows - 1));
      }
      Run({span}, &seconds);
    }
    return seconds;
  }

  StepResult Run(const std::vector<StepSpan>& spans, double* seconds) {
    absl::StatusOr<StepResult> result = engine_.Step(spans);
    if (!result.ok()) {
      std::fprintf(stderr, "baton-bench-model: %s\n",
                   result.status().ToString().c_str());
      std::exit(1);
    }
    *seconds += Seconds(result->elapsed);
    return *std::move(result);
  }

  const Model& model_;
  Engine engine_;
  uint32_t vocabulary_;
  std::shared_ptr<const SamplingParams> greedy_ = Greedy();
};

template <class Run>
void Report(const ModelUnderTest& loaded, uint32_t repetitions,
            const std::string& test, uint32_t tokens, Run run) {
  std::vector<double> speeds;
  run();
  for (uint32_t i = 0; i < repetitions; ++i) speeds.push_back(tokens / run());
  const Speed speed = Summarize(speeds);
  std::printf("| %-12s | %7d | %4s | %-16s | %9.2f ± %-7.2f |\n",
              std::string(loaded.backend->name()).c_str(),
              loaded.backend->threads(),
              std::string(KvTypeName(loaded.model->kv_layout().type)).c_str(),
              test.c_str(), speed.mean, speed.deviation);
  std::fflush(stdout);
}

void RunTests(const BenchFlags& flags, const ModelUnderTest& loaded) {
  const uint32_t largest_batch =
      *std::max_element(flags.batches.begin(), flags.batches.end());
  Bench bench(*loaded.model, std::max(flags.chunk, largest_batch));
  for (const uint32_t prompt : flags.prompts) {
    if (prompt == 0) continue;
    Report(loaded, flags.repetitions, "pp" + std::to_string(prompt), prompt,
           [&] { return bench.Prefill(prompt, flags.chunk); });
  }
  if (flags.generate == 0) return;
  for (const uint32_t batch : flags.batches) {
    std::string test = "tg" + std::to_string(flags.generate);
    if (batch > 1) test += " x " + std::to_string(batch);
    if (flags.depth > 0) test += " @ d" + std::to_string(flags.depth);
    Report(loaded, flags.repetitions, test, flags.generate * batch, [&] {
      return bench.Decode(batch, flags.depth, flags.generate, flags.chunk);
    });
  }
}

absl::Status RunAll(const BenchFlags& flags) {
  std::printf(
      "| backend      | threads |   kv | test             |            "
      "tokens/s |\n|---|---|---|---|---|\n");
  for (const std::string& isa_name : flags.isas) {
    const auto isa = kernels::ParseIsa(isa_name);
    if (!isa.ok()) return isa.status();
    for (const int threads : flags.threads) {
      auto backend = kernels::MakeCpuBackend({.isa = *isa, .threads = threads});
      if (!backend.ok()) return backend.status();
      const auto loaded = ModelUnderTest::Load(
          flags.model, *std::move(backend),
          {.kv_type = flags.kv_type == "f32" ? kernels::KvType::kF32
                                             : kernels::KvType::kF16});
      if (!loaded.ok()) return loaded.status();
      RunTests(flags, *loaded);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::BenchFlags flags;
  CLI::App app(
      "Measures tokens per second of a model: prefill of a prompt (pp) and "
      "generation (tg), mean and deviation over repetitions after a warm-up.");
  app.add_option("-m,--model", flags.model, "GGUF file")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("-p,--prompt", flags.prompts, "prompt tokens, a list")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("-n,--generate", flags.generate, "tokens to generate")
      ->capture_default_str();
  app.add_option("-b,--batch", flags.batches, "sequences decoded together")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("-d,--depth", flags.depth, "tokens held before generation")
      ->capture_default_str();
  app.add_option("-c,--chunk", flags.chunk, "prefill chunk in tokens")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("-t,--threads", flags.threads, "threads, a list")
      ->delimiter(',')
      ->check(CLI::Range(1, baton::kernels::kMaxThreads))
      ->capture_default_str();
  app.add_option("--isa", flags.isas, "auto, scalar, avx2, avx512; a list")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--kv", flags.kv_type, "KV cache type")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->capture_default_str();
  app.add_option("-r,--repetitions", flags.repetitions, "of each test")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const absl::Status status = baton::RunAll(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "baton-bench-model: %s\n",
               std::string(status.message()).c_str());
  return 2;
}
