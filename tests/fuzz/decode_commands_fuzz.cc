// What routers may send a decode worker, and holders seal, through hello
// checks and the real scheduler, with steps and landings ending in any way. The
// harness checks holds and the ledger after every event; tokens of a choice
// have neither gap nor repeat, and all blocks come back.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "tests/fuzz/fuzz_commands.h"
#include "tests/fuzz/fuzz_sessions.h"
#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

using fuzz::FuzzInput;

// A failed assertion of the harness ends the process.
const bool kBreak = [] {
  GTEST_FLAG_SET(break_on_failure, true);
  return true;
}();

DecodeOptions Options(uint8_t flags) {
  DecodeOptions options = SchedulerHarness::Options();
  if ((flags & 1) != 0) options.batching = Batching::kStatic;
  return options;
}

class CommandFuzzer {
 public:
  explicit CommandFuzzer(FuzzInput input)
      : input_(input), harness_(Options(input_.Byte())) {}

  void Run() {
    while (!input_.empty() && events_ < 400) {
      ++events_;
      Step();
      Count();
    }
    Finish();
  }

 private:
  void Step() {
    harness_.now += std::chrono::milliseconds(input_.Below(16));
    const uint32_t kind = input_.Below(16);
    const uint32_t stream = input_.Below(4);
    v1::DecodeCommand command;
    switch (kind) {
      case 0:
        *command.mutable_hello() = fuzz::AnyHello(&input_);
        break;
      case 1:
      case 2:
        Fill(command.mutable_reserve());
        break;
      case 3:
        Fill(command.mutable_serve());
        break;
      case 4:
        command.mutable_release()->set_attempt_id(input_.Below(32));
        break;
      case 5:
      case 6:
        if (!fuzz::ReadMessage(&input_, &command)) return;
        break;
      case 7:
        sessions_.End(stream);
        return;
      case 8:
        harness_.now += std::chrono::milliseconds(input_.Number<uint16_t>());
        harness_.Feed(Tick{});
        return;
      case 9:
        harness_.auto_open = input_.Bool();
        return;
      case 10:
        if (!harness_.opening.empty()) {
          harness_.Open(input_.Below(8) == 0
                            ? absl::ResourceExhaustedError("no")
                            : absl::OkStatus());
        }
        return;
      case 11:
      case 12:
        MoveLanding();
        return;
      case 13:
        if (input_.Byte() == 255) harness_.Feed(DrainStarted{});
        return;
      default:
        FinishStep();
        return;
    }
    sessions_.Receive(stream, std::move(command));
  }

  template <class Command>
  void Fill(Command* command) {
    command->set_attempt_id(input_.Below(32));
    *command->mutable_sequence() = fuzz::AnySpec(&input_);
    command->set_deadline_ms(input_.Number<uint16_t>());
  }

  void MoveLanding() {
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
    if (how == 1) {
      if (!fuzz::ReadMessage(&input_, &event.seal)) return;
    } else {
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

  void FinishStep() {
    if (!harness_.step.has_value()) return;
    const StepPlan plan = *std::exchange(harness_.step, std::nullopt);
    harness_.Feed(StepDone{plan.number, fuzz::AnyResult(&input_, plan)});
  }

  void Count() {
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
  // The id may be used again, which no router does.
  void Forget(SessionId session, uint64_t attempt) {
    std::erase_if(next_, [&](const auto& entry) {
      return std::get<0>(entry.first) == session &&
             std::get<1>(entry.first) == attempt;
    });
  }

  void Finish() {
    harness_.auto_open = true;
    while (!harness_.opening.empty()) harness_.Open();
    harness_.Feed(DrainStarted{});
    for (int i = 0; i < 20000 && !harness_.scheduler.idle(); ++i) {
      if (harness_.step.has_value()) harness_.FinishStep();
      if (!harness_.landings.empty()) {
        const auto& [id, landing] = *harness_.landings.begin();
        if (landing.cancelled || landing.failed) {
          harness_.CloseLanding(id);
        } else {
          harness_.Fail(id);
        }
      }
    }
    BATON_CHECK(harness_.scheduler.idle());
    BATON_CHECK(harness_.AllFree());
    BATON_CHECK(harness_.scheduler.Load().waiting_sequences() == 0);
    BATON_CHECK(harness_.scheduler.Load().running_sequences() == 0);
  }

  FuzzInput input_;
  int events_ = 0;
  SchedulerHarness harness_;
  fuzz::FuzzSessions<v1::DecodeCommand> sessions_{
      {[this](SessionId session) { harness_.Feed(SessionOpened{session}); },
       [this](SessionId session, v1::DecodeCommand command) {
         if (command.has_release()) {
           Forget(session, command.release().attempt_id());
         }
         harness_.Send(session.value(), std::move(command));
       },
       [this](SessionId session) { harness_.Feed(SessionLost{session}); }}};
  // Index of the next token, by session, attempt and choice.
  std::map<std::tuple<SessionId, uint64_t, uint32_t>, uint32_t> next_;
};

}  // namespace
}  // namespace baton::decode

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 8 << 10) {
    baton::decode::CommandFuzzer(baton::fuzz::FuzzInput(data, size)).Run();
  }
  return 0;
}
