// speculation_bench: what guessing saves. Runs prompts through one decode
// worker without and others with speculation, in turns, on one machine; every
// answer must be the same, token by token.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/model_file/gguf.h"
#include "common/tokenizer/tokenizer.h"
#include "common/worker/step_costs.h"
#include "common/worker/vocabulary_adapter.h"
#include "decode_worker/decode_engine.h"
#include "kernels/cpu/cpu_backend.h"
#include "kv_transfer/loopback/loopback_transport.h"
#include "nlohmann/json.hpp"

namespace baton {
namespace {

struct Flags {
  std::string model;
  std::string workload;
  std::vector<std::string> arms = {"ngram", "suffix"};
  uint32_t batch = 1;
  uint32_t max_draft_tokens = 16;
  uint32_t random_prompts = 0;
  uint32_t tokens = 128;
  uint32_t limit = 1000;
  uint32_t repetitions = 1;
  float temperature = 0;
  int threads = 1;
  bool ignore_eos = false;
  bool always = false;
  bool verbose = false;
};

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

// What a group of requests took from its last first token on.
struct Measured {
  double seconds = 0, cpu_seconds = 0;
  uint64_t tokens = 0, steps = 0, drafted = 0, accepted = 0;
  std::map<uint64_t, std::vector<uint32_t>> answers;  // by attempt

  void Add(const Measured& other) {
    seconds += other.seconds;
    cpu_seconds += other.cpu_seconds;
    tokens += other.tokens;
    steps += other.steps;
    drafted += other.drafted;
    accepted += other.accepted;
  }
};

class Arm {
 public:
  Arm(std::string name, const Flags& flags, const Model& model,
      std::shared_ptr<const Vocabulary> vocabulary)
      : name_(std::move(name)) {
    constexpr uint32_t kBlocks = 2048;
    memory_ = *KvMemory::Create(model.kv_layout(), kBlocks);
    WorkerParts parts;
    parts.epoch = WorkerEpoch(1);
    parts.model = &model;
    parts.memory = memory_.get();
    parts.vocabulary = std::move(vocabulary);
    parts.max_context_tokens = static_cast<uint32_t>(model.config().context);
    parts.costs = *ProbeStepCosts(model, memory_.get(),
                                  {.max_rows = parts.step_tokens,
                                   .max_positions = parts.max_context_tokens});
    parts.transport = hub_.MakeTransport();
    decode::DecodeSettings settings;
    settings.speculation.drafters = decode::DraftersNamed(name_);
    settings.speculation.max_draft_tokens = flags.max_draft_tokens;
    settings.speculation.always = flags.always;
    const StepCosts& costs = parts.costs->costs();
    std::printf(
        "%-8s step costs in ms: fixed %.2f, weights %.2f, row %.3f, logits "
        "%.3f, 1000 kv tokens %.3f, 1000 pairs %.3f\n",
        name_.c_str(), costs.fixed * 1e3, costs.weights * 1e3, costs.row * 1e3,
        costs.logit_row * 1e3, costs.kv_token * 1e6, costs.pair * 1e6);
    engine_ = std::make_unique<decode::DecodeEngine>(
        std::move(parts), settings,
        [this](SessionId, v1::DecodeEvent event) { Take(std::move(event)); });
    engine_->Post(SessionOpened{SessionId(1)});
  }

  const std::string& name() const { return name_; }

  Measured Run(const std::vector<v1::SequenceSpec>& specs) {
    {
      std::lock_guard lock(mutex_);
      now_ = {};
      first_ = done_ = 0;
      wanted_ = specs.size();
    }
    for (size_t i = 0; i < specs.size(); ++i) {
      v1::DecodeCommand command;
      command.mutable_serve()->set_attempt_id(i + 1);
      *command.mutable_serve()->mutable_sequence() = specs[i];
      command.mutable_serve()->set_deadline_ms(600000);
      engine_->Post(decode::CommandReceived{SessionId(1), std::move(command)});
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ == wanted_; });
    return now_;
  }

 private:
  void Take(v1::DecodeEvent event) {
    std::lock_guard lock(mutex_);
    if (event.has_failed() || event.has_refused()) {
      std::fprintf(stderr, "%s\n", event.ShortDebugString().c_str());
      std::abort();
    }
    const bool all_began = first_ == wanted_;
    for (const v1::TokenDelta& token : event.tokens().tokens()) {
      now_.answers[token.attempt_id()].push_back(token.token_id());
      if (token.index() == 0) ++first_;
      if (all_began) ++now_.tokens;
    }
    if (!all_began && first_ == wanted_) {
      start_ = MonotonicNow();
      cpu_start_ = CpuSeconds();
    }
    if (!event.has_done()) return;
    ++done_;
    now_.steps += event.done().steps();
    now_.drafted += event.done().drafted_tokens();
    now_.accepted += event.done().accepted_tokens();
    now_.seconds = Seconds(MonotonicNow() - start_);
    now_.cpu_seconds = CpuSeconds() - cpu_start_;
    if (done_ == wanted_) changed_.notify_all();
  }

  const std::string name_;
  transfer::LoopbackHub hub_;
  std::unique_ptr<KvMemory> memory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Measured now_;
  size_t first_ = 0, done_ = 0, wanted_ = 0;
  MonotonicTime start_;
  double cpu_start_ = 0;
  std::unique_ptr<decode::DecodeEngine> engine_;  // last: it calls Take
};

v1::SequenceSpec SpecFor(const std::vector<TokenId>& prompt,
                         const Flags& flags) {
  v1::SequenceSpec spec;
  spec.mutable_prompt_token_ids()->Add(prompt.begin(), prompt.end());
  spec.mutable_sampling()->set_temperature(flags.temperature);
  spec.mutable_sampling()->set_top_p(1);
  spec.mutable_sampling()->set_repetition_penalty(1);
  spec.mutable_sampling()->set_seed(prompt.size());
  spec.set_max_tokens(flags.tokens);
  spec.set_ignore_eos(flags.ignore_eos);
  spec.add_choices()->set_index(0);
  return spec;
}

absl::StatusOr<std::vector<v1::SequenceSpec>> Prompts(
    const Flags& flags, const Tokenizer& tokenizer) {
  std::vector<v1::SequenceSpec> specs;
  std::mt19937 random(7);
  for (uint32_t i = 0; i < flags.random_prompts; ++i) {
    std::vector<TokenId> prompt(200);
    for (TokenId& token : prompt) {
      token = static_cast<TokenId>(100 + random() % 40000);
    }
    specs.push_back(SpecFor(prompt, flags));
    specs.back().mutable_sampling()->set_seed(i);
  }
  if (flags.workload.empty()) return specs;
  std::ifstream lines(flags.workload);
  for (std::string line; specs.size() < flags.limit && getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_discarded() || !entry.contains("prompt")) {
      return absl::InvalidArgumentError(
          StrCat(flags.workload, ": not a prompt: ", line));
    }
    const std::string text =
        StrCat("<|im_start|>user\n", entry["prompt"].get<std::string>(),
               "<|im_end|>\n<|im_start|>assistant\n");
    BATON_ASSIGN_OR_RETURN(
        const std::vector<TokenId> prompt,
        tokenizer.Encode(text, {.parse_special = true, .add_special = false}));
    specs.push_back(SpecFor(prompt, flags));
    if (entry.contains("max_tokens")) {
      specs.back().set_max_tokens(entry["max_tokens"].get<uint32_t>());
    }
  }
  return specs;
}

// Mean of the logarithms, and half the width of its 95 % interval.
struct Ratio {
  std::vector<double> logs;
  double mean() const {
    return std::accumulate(logs.begin(), logs.end(), 0.0) /
           static_cast<double>(logs.size());
  }
  double half_width() const {
    if (logs.size() < 2) return 0;
    double squares = 0;
    for (const double log : logs) squares += (log - mean()) * (log - mean());
    const auto n = static_cast<double>(logs.size());
    return 1.96 * std::sqrt(squares / (n - 1) / n);
  }
  std::string ToString() const {
    return absl::StrFormat("%.3f (%.3f to %.3f)", std::exp(mean()),
                           std::exp(mean() - half_width()),
                           std::exp(mean() + half_width()));
  }
};

absl::Status Run(const Flags& flags) {
  BATON_ASSIGN_OR_RETURN(auto file, GgufFile::Open(flags.model));
  BATON_ASSIGN_OR_RETURN(std::shared_ptr<const Tokenizer> tokenizer,
                         Tokenizer::FromGguf(*file));
  BATON_ASSIGN_OR_RETURN(auto backend,
                         kernels::MakeCpuBackend({.threads = flags.threads}));
  BATON_ASSIGN_OR_RETURN(auto model, Model::Load(*file, backend.get(), {}));
  BATON_ASSIGN_OR_RETURN(const auto specs, Prompts(flags, *tokenizer));
  std::vector<std::unique_ptr<Arm>> arms;
  std::vector<std::string> names = {"off"};
  names.insert(names.end(), flags.arms.begin(), flags.arms.end());
  for (const std::string& name : names) {
    arms.push_back(
        std::make_unique<Arm>(name, flags, *model, VocabularyOf(tokenizer)));
  }
  std::vector<Measured> sums(arms.size());
  std::vector<Ratio> wall(arms.size()), cpu(arms.size());
  uint64_t compared = 0;
  for (uint32_t repetition = 0; repetition < flags.repetitions; ++repetition) {
    for (size_t i = 0; i < specs.size(); i += flags.batch) {
      const std::vector<v1::SequenceSpec> group(
          specs.begin() + static_cast<ptrdiff_t>(i),
          specs.begin() +
              static_cast<ptrdiff_t>(std::min(specs.size(), i + flags.batch)));
      std::vector<Measured> measured(arms.size());
      for (size_t a = 0; a < arms.size(); ++a) {
        const size_t turn = (a + i / flags.batch + repetition) % arms.size();
        measured[turn] = arms[turn]->Run(group);
      }
      for (size_t a = 0; a < arms.size(); ++a) {
        if (measured[a].answers != measured[0].answers) {
          return absl::InternalError(
              StrCat(arms[a]->name(), " changed the answer of prompt ", i));
        }
        ++compared;
        sums[a].Add(measured[a]);
        wall[a].logs.push_back(
            std::log(measured[0].seconds / measured[a].seconds));
        cpu[a].logs.push_back(
            std::log(measured[0].cpu_seconds / measured[a].cpu_seconds));
        if (!flags.verbose) continue;
        std::printf(
            "prompt %2zu %-8s %4zu tokens, %4zu steps, %4zu of %4zu "
            "right, %.1f tokens/s\n",
            i, arms[a]->name().c_str(), static_cast<size_t>(measured[a].tokens),
            static_cast<size_t>(measured[a].steps),
            static_cast<size_t>(measured[a].accepted),
            static_cast<size_t>(measured[a].drafted),
            static_cast<double>(measured[a].tokens) / measured[a].seconds);
      }
    }
  }
  std::printf("%zu answers, equal in every arm\n",
              static_cast<size_t>(compared));
  std::printf(
      "| arm | steps | fewer | rows/token | right | tokens/s | times "
      "off: wall | times off: CPU |\n|---|---|---|---|---|---|---|---|\n");
  for (size_t a = 0; a < arms.size(); ++a) {
    const Measured& sum = sums[a];
    std::printf(
        "| %s | %zu | %.2f | %.3f | %.0f %% of %zu | %.1f | %s | %s |\n",
        arms[a]->name().c_str(), static_cast<size_t>(sum.steps),
        static_cast<double>(sums[0].steps) / static_cast<double>(sum.steps),
        static_cast<double>(sum.steps + sum.drafted) /
            static_cast<double>(sums[0].steps),
        100.0 * static_cast<double>(sum.accepted) /
            static_cast<double>(std::max<uint64_t>(sum.drafted, 1)),
        static_cast<size_t>(sum.drafted),
        static_cast<double>(sum.tokens) / sum.seconds,
        wall[a].ToString().c_str(), cpu[a].ToString().c_str());
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "What speculation saves: steps, rows and time of the same "
      "answers without and with it, in turns.");
  app.add_option("-m,--model", flags.model, "GGUF file")->required();
  app.add_option("-w,--workload", flags.workload,
                 "prompts as chat, one JSON object a line: prompt, max_tokens");
  app.add_option("--random-prompts", flags.random_prompts,
                 "so many prompts of random tokens: nothing can be guessed");
  app.add_option("-a,--arms", flags.arms, "ngram, suffix; beside off");
  app.add_option("-b,--batch", flags.batch, "requests at once");
  app.add_option("-k,--max-draft-tokens", flags.max_draft_tokens,
                 "most guesses of an answer in a step");
  app.add_option("-n,--tokens", flags.tokens,
                 "of an answer, where the workload "
                 "does not say");
  app.add_option("--limit", flags.limit, "most prompts of the workload");
  app.add_option("-r,--repetitions", flags.repetitions, "of every prompt");
  app.add_option("--temperature", flags.temperature, "0: greedy");
  app.add_option("-t,--threads", flags.threads, "threads");
  app.add_flag("--ignore-eos", flags.ignore_eos, "answers have full length");
  app.add_flag("--always", flags.always, "guess whatever it costs");
  app.add_flag("-v,--verbose", flags.verbose, "every prompt");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) { return baton::Main(argc, argv); }
