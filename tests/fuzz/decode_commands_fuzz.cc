// What routers may send a decode worker, and holders seal, through hello
// checks and the real scheduler, with steps and landings ending in any way. The
// harness checks holds and the ledger after every event; tokens of a choice
// have neither gap nor repeat, and all blocks come back.
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tests/fuzz/command_fuzzer.h"
#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

DecodeOptions Options(uint8_t flags) {
  DecodeOptions options = SchedulerHarness::Options();
  if ((flags & 1) != 0) options.batching = Batching::kStatic;
  if ((flags & 2) != 0) {  // whoever has no room for its next block pushes
    options.blocks = 24;
    options.length_quantile = 0;
  }
  if ((flags & 4) != 0) options.forced_preemptions = 2;
  options.preempted_return = PreemptedReturn::kPush;
  SpeculationOptions& speculation = options.speculation;
  if ((flags & 24) == 8) speculation.drafters = DraftersNamed("ngram");
  if ((flags & 24) == 16) speculation.drafters = DraftersNamed("suffix");
  if ((flags & 24) == 24) {
    speculation.draft_model = {.blocks = 16,
                               .max_positions = 300,
                               .max_rows = 64,
                               .tokens_per_step = 32};
  }
  speculation.always = (flags & 32) != 0;
  speculation.max_draft_tokens = 1 + (flags >> 6) * 7;
  return options;
}

class DecodeFuzzer final
    : public fuzz::CommandFuzzer<SchedulerHarness, v1::DecodeCommand> {
 public:
  // The first byte chooses the options.
  static DecodeFuzzer From(fuzz::FuzzInput input) {
    const DecodeOptions options = Options(input.Byte());
    return DecodeFuzzer(input, options);
  }

 private:
  DecodeFuzzer(fuzz::FuzzInput input, const DecodeOptions& options)
      : CommandFuzzer(input, options) {}

  void Fill(uint32_t kind, v1::DecodeCommand* command) override {
    if (kind == 2) {
      v1::PushRefused& refused = *command->mutable_push_refused();
      refused.set_attempt_id(input_.Below(32));
      refused.set_gone(refused.attempt_id() % 2 == 0);
      if (harness_.landings.empty()) return;
      refused.set_landing_id(harness_.landings.rbegin()->first.value() -
                             input_.Below(2));
    } else if (kind == 4) {
      command->mutable_release()->set_attempt_id(input_.Below(32));
    } else if (kind == 3) {
      FillWork(command->mutable_serve());
    } else {
      FillWork(command->mutable_reserve());
    }
  }
  template <class Work>
  void FillWork(Work* work) {
    work->set_attempt_id(input_.Below(32));
    *work->mutable_sequence() = fuzz::AnySpec(&input_);
    work->set_deadline_ms(input_.Number<uint16_t>());
  }
  absl::Status CannotOpen() const override {
    return absl::ResourceExhaustedError("no");
  }

  void MoveKv() override {
    if (harness_.landings.empty()) return;
    auto it = harness_.landings.begin();
    std::advance(it,
                 input_.Below(static_cast<uint32_t>(harness_.landings.size())));
    const LandingId id = it->first;
    const bool over = it->second.cancelled || it->second.failed;
    const uint32_t how = input_.Below(8);
    if (it->second.failed || (over && how > 1)) {
      harness_.CloseLanding(id);
    } else if (how > 0) {
      Verify(id, how);
    } else if (!over) {
      harness_.Fail(id);
    }
  }

  // The seal of an honest holder, or of any other.
  void Verify(LandingId id, uint32_t how) {
    transfer::LandingVerified event;
    event.landing = id;
    event.blocks =
        static_cast<uint32_t>(harness_.landings.at(id).blocks.size());
    const bool fetched = !landed_.insert(harness_.landings.at(id).job).second;
    if (how == 1) {
      if (!fuzz::ReadMessage(&input_, &event.seal)) return;
    } else if (!fetched || how == 2) {
      const uint32_t tokens = 1 + input_.Below(4);
      const uint32_t index = input_.Byte() < 240 ? 0 : input_.Below(20);
      for (uint32_t choice = 0; choice < tokens; ++choice) {
        v1::TokenDelta* first = event.seal.add_first_tokens();
        first->set_choice(choice);
        first->set_index(index);
        first->set_token_id(input_.Below(102));
      }
    }
    harness_.landings.erase(id);
    harness_.Feed(transfer::TransferEvent(std::move(event)));
  }

  void EndKv() override {
    if (harness_.landings.empty()) return;
    const auto& [id, landing] = *harness_.landings.begin();
    if (landing.cancelled || landing.failed) {
      harness_.CloseLanding(id);
    } else {
      harness_.Fail(id);
    }
  }

  void Count() override {
    for (auto& [session, said] : harness_.events) {
      for (const v1::DecodeEvent& event : std::exchange(said, {})) {
        if (event.has_done()) Forget(session, event.done().attempt_id());
        if (event.has_failed()) Forget(session, event.failed().attempt_id());
        if (event.has_refused()) {
          BATON_CHECK(!event.refused().reason().empty());
        }
        for (const v1::TokenDelta& token : event.tokens().tokens()) {
          BATON_CHECK(token.token_id() < toy::kVocabulary);
          const auto [it, first] = next_.try_emplace(
              {session, token.attempt_id(), token.choice()}, token.index());
          BATON_CHECK(it->second++ == token.index());
        }
      }
    }
  }
  void Received(SessionId session, const v1::DecodeCommand& command) override {
    if (command.has_release()) Forget(session, command.release().attempt_id());
  }
  // The id may be used again, which no router does.
  void Forget(SessionId session, uint64_t attempt) {
    std::erase_if(next_, [&](const auto& entry) {
      return std::get<0>(entry.first) == session &&
             std::get<1>(entry.first) == attempt;
    });
  }

  void Finish() override {
    CommandFuzzer::Finish();
    BATON_CHECK(harness_.scheduler.Load().waiting_sequences() == 0);
    BATON_CHECK(harness_.scheduler.Load().running_sequences() == 0);
    BATON_CHECK(harness_.scheduler.counters().most_preemptions <= 3);
  }

  std::set<JobId> landed_;  // once: what lands again was asked for
  // Index of the next token, by session, attempt and choice.
  std::map<std::tuple<SessionId, uint64_t, uint32_t>, uint32_t> next_;
};

}  // namespace
}  // namespace baton::decode

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 8 << 10) {
    baton::decode::DecodeFuzzer::From(baton::fuzz::FuzzInput(data, size)).Run();
  }
  return 0;
}
