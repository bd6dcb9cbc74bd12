#ifndef BATON_TESTS_UNIT_DECODE_WORKER_ENGINE_PAIR_H_
#define BATON_TESTS_UNIT_DECODE_WORKER_ENGINE_PAIR_H_

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/model_file/gguf.h"
#include "common/worker/vocabulary_adapter.h"
#include "decode_worker/decode_engine.h"
#include "kernels/cpu/cpu_backend.h"
#include "kv_transfer/loopback/loopback_transport.h"
#include "prefill_worker/prefill_engine.h"
#include "tests/support/tiny_model.h"
#include "tests/unit/decode_worker/event_queue.h"

namespace baton {

// A model of its own with memory, as one worker has it.
struct LoadedWorker {
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<Model> model;
  std::unique_ptr<KvMemory> memory;
  std::shared_ptr<const Vocabulary> vocabulary;

  LoadedWorker(const std::string& path, uint32_t blocks,
               bool allow_nonfinite = false) {
    auto file = GgufFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    backend = *kernels::MakeCpuBackend({});
    model = *Model::Load(**file, backend.get(),
                         {.load = {.allow_nonfinite = allow_nonfinite}});
    memory = *KvMemory::Create(model->kv_layout(), blocks);
    vocabulary = VocabularyOf(*Tokenizer::FromGguf(**file));
  }
  WorkerParts Parts(uint64_t epoch, uint32_t step_tokens,
                    std::unique_ptr<transfer::Transport> transport) const {
    WorkerParts parts;
    parts.epoch = WorkerEpoch(epoch);
    parts.model = model.get();
    parts.memory = memory.get();
    parts.vocabulary = vocabulary;
    parts.max_context_tokens = static_cast<uint32_t>(model->config().context);
    parts.step_tokens = step_tokens;
    parts.transport = std::move(transport);
    parts.poison_freed_blocks = true;
    return parts;
  }
};

// A model that guesses for the decode worker of a pair.
struct DraftFile {
  std::string path;  // empty: none
  uint32_t blocks = 64;
  bool allow_nonfinite = false;  // weights
};

// A prefill and a decode worker in one process, joined by loopback, driven as
// a router would.
class EnginePair {
 public:
  EnginePair(const std::string& model_path, uint32_t step_tokens,
             uint32_t blocks = 64, const decode::DecodeSettings& settings = {},
             const DraftFile& draft = {})
      : p_(model_path, 64),
        d_(model_path, blocks),
        draft_(draft.path.empty()
                   ? nullptr
                   : std::make_unique<LoadedWorker>(draft.path, draft.blocks,
                                                    draft.allow_nonfinite)),
        decode_metrics("decode", "tiny"),
        prefill(p_.Parts(1, step_tokens, hub_.MakeTransport()),
                [this](SessionId, v1::PrefillEvent event) {
                  if (event.has_push_refused()) {
                    PassOn(event.push_refused());
                  } else {
                    events.Add(std::move(event));
                  }
                }),
        decode(Measured(DecodeParts(step_tokens)),
               WithDraft(settings, step_tokens),
               [this](SessionId, v1::DecodeEvent event) {
                 if (event.has_push_wanted()) {
                   PassOn(event.push_wanted());
                 } else {
                   events.Add(std::move(event));
                 }
               }) {
    prefill.Post(SessionOpened{kSession});
    decode.Post(SessionOpened{kSession});
  }

  void Command(v1::PrefillCommand command) {
    prefill.Post(prefill::CommandReceived{kSession, std::move(command)});
  }
  void Command(v1::DecodeCommand command) {
    decode.Post(decode::CommandReceived{kSession, std::move(command)});
  }
  // The ticket for a new attempt.
  v1::Ticket Reserve(uint64_t attempt, const v1::SequenceSpec& spec) {
    v1::DecodeCommand command;
    command.mutable_reserve()->set_attempt_id(attempt);
    *command.mutable_reserve()->mutable_sequence() = spec;
    command.mutable_reserve()->set_deadline_ms(60000);
    Command(std::move(command));
    return events
        .Take<v1::DecodeEvent>([&](const v1::DecodeEvent& event) {
          return event.reserved().attempt_id() == attempt;
        })
        .reserved()
        .ticket();
  }
  void StartPrefill(uint64_t attempt, const v1::SequenceSpec& spec,
                    const v1::Ticket& ticket) {
    v1::PrefillCommand command;
    command.mutable_start()->set_attempt_id(attempt);
    *command.mutable_start()->mutable_sequence() = spec;
    *command.mutable_start()->mutable_ticket() = ticket;
    command.mutable_start()->set_deadline_ms(60000);
    Command(std::move(command));
  }
  void Serve(uint64_t attempt, const v1::SequenceSpec& spec) {
    v1::DecodeCommand command;
    command.mutable_serve()->set_attempt_id(attempt);
    *command.mutable_serve()->mutable_sequence() = spec;
    command.mutable_serve()->set_deadline_ms(60000);
    Command(std::move(command));
  }
  // Until both are idle; then every block must be free.
  void ExpectCleanPools() {
    const MonotonicTime limit = MonotonicNow() + std::chrono::seconds(30);
    while (!prefill.state().idle || !decode.state().idle) {
      ASSERT_LT(MonotonicNow(), limit);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(prefill.state().clean()) << prefill.state().ledger.ToString();
    EXPECT_TRUE(decode.state().clean()) << decode.state().ledger.ToString();
  }

  // Of the decode worker: all series of a counter that end with this label.
  uint64_t DecodeCounter(const std::string& name,
                         const std::string& label = "") const {
    const std::string text = decode_metrics.Render();
    uint64_t sum = 0;
    bool found = false;
    for (size_t at = 0;
         (at = text.find("\n" + name + "{", at)) != std::string::npos;) {
      const size_t end = text.find("} ", ++at);
      if (!text.substr(at, end - at).ends_with(label)) continue;
      sum += std::stoull(text.substr(end + 2));
      found = true;
    }
    EXPECT_TRUE(found) << name << " " << label;
    return sum;
  }
  uint64_t Returns(const std::string& way) const {
    return DecodeCounter("baton_preempted_returns_total",
                         "way=\"" + way + "\"");
  }

 private:
  // As a router does.
  void PassOn(const v1::PushWanted& wanted) {
    v1::PrefillCommand command;
    v1::PushPrefix& push = *command.mutable_push();
    push.set_attempt_id(wanted.attempt_id());
    *push.mutable_ticket() = wanted.ticket();
    push.set_prefix_hash(wanted.prefix_hash());
    push.set_deadline_ms(wanted.deadline_ms());
    Command(std::move(command));
  }
  void PassOn(const v1::PushRefused& refused) {
    v1::DecodeCommand command;
    *command.mutable_push_refused() = refused;
    Command(std::move(command));
  }

  WorkerParts DecodeParts(uint32_t step_tokens) {
    WorkerParts parts = d_.Parts(2, step_tokens, hub_.MakeTransport());
    if (draft_ != nullptr) {
      parts.draft = {draft_->model.get(), draft_->memory.get()};
    }
    return parts;
  }
  decode::DecodeSettings WithDraft(decode::DecodeSettings settings,
                                   uint32_t step_tokens) const {
    if (draft_ != nullptr) {
      settings.speculation.draft_model = {
          .blocks = draft_->memory->blocks(),
          .max_positions =
              static_cast<uint32_t>(draft_->model->config().context),
          .max_rows = decode::MaxStepRows(settings, step_tokens),
          .tokens_per_step = step_tokens};
    }
    return settings;
  }

  static constexpr SessionId kSession{1};
  WorkerParts Measured(WorkerParts parts) {
    parts.metrics = &decode_metrics;
    return parts;
  }
  transfer::LoopbackHub hub_;
  LoadedWorker p_, d_;
  std::unique_ptr<LoadedWorker> draft_;

 public:
  WorkerMetrics decode_metrics;
  EventQueue events;
  prefill::PrefillEngine prefill;
  decode::DecodeEngine decode;
};

}  // namespace baton

#endif  // BATON_TESTS_UNIT_DECODE_WORKER_ENGINE_PAIR_H_
