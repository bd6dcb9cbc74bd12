// What routers may send a prefill worker, through hello checks and the real
// scheduler, with steps and transfers ending in any way. The harness checks
// holds and the ledger after every event; each attempt ends once and all
// blocks come back.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "tests/fuzz/fuzz_commands.h"
#include "tests/fuzz/fuzz_sessions.h"
#include "tests/unit/prefill_worker/scheduler_harness.h"

namespace baton::prefill {
namespace {

using fuzz::FuzzInput;

// A failed assertion of the harness ends the process.
const bool kBreak = [] {
  GTEST_FLAG_SET(break_on_failure, true);
  return true;
}();

class CommandFuzzer {
 public:
  explicit CommandFuzzer(FuzzInput input) : input_(input) {}

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
    v1::PrefillCommand command;
    switch (kind) {
      case 0:
        *command.mutable_hello() = fuzz::AnyHello(&input_);
        break;
      case 1:
      case 2:
      case 3:
        Start(command.mutable_start());
        break;
      case 4:
        command.mutable_cancel()->set_attempt_id(input_.Below(32));
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
        Open();
        return;
      case 11:
      case 12:
        MoveTransfer();
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

  void Start(v1::StartPrefill* start) {
    start->set_attempt_id(input_.Below(32));
    *start->mutable_sequence() = fuzz::AnySpec(&input_);
    start->mutable_ticket()->set_token_count(
        static_cast<uint32_t>(ContextTokensOf(start->sequence())) +
        (input_.Byte() == 255 ? 1 : 0));
    start->mutable_ticket()->set_timeout_ms(30000);
    start->set_deadline_ms(input_.Number<uint16_t>());
  }

  void Open() {
    if (harness_.opening.empty()) return;
    harness_.Open(input_.Below(8) == 0 ? absl::UnavailableError("no")
                                       : absl::OkStatus());
  }

  void MoveTransfer() {
    if (harness_.transfers.empty()) return;
    auto it = harness_.transfers.begin();
    std::advance(
        it, input_.Below(static_cast<uint32_t>(harness_.transfers.size())));
    const TransferId id = it->first;
    const SchedulerHarness::Transfer& transfer = it->second;
    const uint32_t how = input_.Below(8);
    if (transfer.aborted || transfer.failed) {
      if (transfer.seal.has_value() && !transfer.failed && how == 0) {
        harness_.Acknowledge(id);
      } else {
        harness_.CloseTransfer(id);
      }
    } else if (transfer.seal.has_value() && how > 2) {
      harness_.Acknowledge(id);
    } else if (how == 0) {
      harness_.Fail(id);
    }
  }

  void FinishStep() {
    if (!harness_.step.has_value()) return;
    const StepPlan plan = *std::exchange(harness_.step, std::nullopt);
    harness_.Feed(StepDone{plan.number, fuzz::AnyResult(&input_, plan)});
  }

  // An attempt ends at most once on a session, and says nothing afterwards.
  void Count() {
    for (auto& [session, said] : harness_.events) {
      for (const v1::PrefillEvent& event : std::exchange(said, {})) {
        if (event.has_failed()) {
          // A repeated id is refused while the first one runs.
          continue;
        }
        if (event.has_first_tokens()) {
          BATON_CHECK(event.first_tokens().tokens_size() > 0);
          ++first_[{session, event.first_tokens().attempt_id()}];
        }
        if (event.has_handed_over()) {
          int& first = first_[{session, event.handed_over().attempt_id()}];
          BATON_CHECK(first-- > 0);
        }
      }
    }
  }

  void Finish() {
    harness_.auto_open = true;
    while (!harness_.opening.empty()) harness_.Open();
    harness_.Feed(DrainStarted{});
    for (int i = 0; i < 20000 && !harness_.scheduler.idle(); ++i) {
      if (harness_.step.has_value()) harness_.FinishStep();
      if (!harness_.transfers.empty()) {
        const auto& [id, transfer] = *harness_.transfers.begin();
        if (transfer.seal.has_value() && !transfer.failed) {
          harness_.Acknowledge(id);
        } else if (transfer.aborted || transfer.failed) {
          harness_.CloseTransfer(id);
        } else {
          harness_.Fail(id);
        }
      }
    }
    BATON_CHECK(harness_.scheduler.idle());
    BATON_CHECK(harness_.AllFree());
  }

  FuzzInput input_;
  int events_ = 0;
  SchedulerHarness harness_{48, 32, 16};
  fuzz::FuzzSessions<v1::PrefillCommand> sessions_{
      {[this](SessionId session) { harness_.Feed(SessionOpened{session}); },
       [this](SessionId session, v1::PrefillCommand command) {
         harness_.Send(session.value(), std::move(command));
       },
       [this](SessionId session) { harness_.Feed(SessionLost{session}); }}};
  std::map<std::pair<SessionId, uint64_t>, int> first_;
};

}  // namespace
}  // namespace baton::prefill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 8 << 10) {
    baton::prefill::CommandFuzzer(baton::fuzz::FuzzInput(data, size)).Run();
  }
  return 0;
}
