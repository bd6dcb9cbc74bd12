#ifndef BATON_TESTS_FUZZ_COMMAND_FUZZER_H_
#define BATON_TESTS_FUZZ_COMMAND_FUZZER_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/base/check.h"
#include "common/worker/scheduler_events.h"
#include "tests/fuzz/fuzz_commands.h"
#include "tests/fuzz/fuzz_sessions.h"

namespace baton::fuzz {

// What routers may send a worker of either kind, through hello checks and its
// real scheduler in its harness, with steps ending in any way. The harness
// checks holds and the ledger after every event; a failed assertion of it ends
// the process.
template <class Harness, class Command>
class CommandFuzzer {
 public:
  virtual ~CommandFuzzer() = default;

  void Run() {
    GTEST_FLAG_SET(break_on_failure, true);
    while (!input_.empty() && events_ < 400) {
      ++events_;
      Step();
      Count();
    }
    Finish();
  }

 protected:
  template <class... HarnessArguments>
  explicit CommandFuzzer(FuzzInput input, HarnessArguments&&... arguments)
      : input_(input), harness_(std::forward<HarnessArguments>(arguments)...) {}

  // A command of the worker's own; `kind` is 1 to 4.
  virtual void Fill(uint32_t kind, Command* command) = 0;
  // A transfer or landing goes on, ends, or fails.
  virtual void MoveKv() = 0;
  // One of them ends, for the worker to become idle.
  virtual void EndKv() = 0;
  virtual absl::Status CannotOpen() const = 0;
  // Judges what the worker has said since the last call.
  virtual void Count() = 0;
  virtual void Received(SessionId, const Command&) {}

  // Ends all work; then nothing is held but what is cached.
  virtual void Finish() {
    harness_.auto_open = true;
    while (!harness_.opening.empty()) harness_.Open();
    harness_.Feed(DrainStarted{});
    for (int i = 0; i < 20000 && !harness_.scheduler.idle(); ++i) {
      if (harness_.step.has_value()) harness_.FinishStep();
      EndKv();
    }
    BATON_CHECK(harness_.scheduler.idle());
    BATON_CHECK(harness_.AllFreeOrCached());
  }

  FuzzInput input_;
  Harness harness_;

 private:
  void Step() {
    harness_.now += std::chrono::milliseconds(input_.Below(16));
    const uint32_t kind = input_.Below(16);
    const uint32_t stream = input_.Below(4);
    Command command;
    switch (kind) {
      case 0:
        *command.mutable_hello() = AnyHello(&input_);
        break;
      case 1:
      case 2:
      case 3:
      case 4:
        Fill(kind, &command);
        break;
      case 5:
      case 6:
        if (!ReadMessage(&input_, &command)) return;
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
        if (harness_.opening.empty()) return;
        harness_.Open(input_.Below(8) == 0 ? CannotOpen() : absl::OkStatus());
        return;
      case 11:
      case 12:
        MoveKv();
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

  void FinishStep() {
    if (!harness_.step.has_value()) return;
    const StepPlan plan = *std::exchange(harness_.step, std::nullopt);
    harness_.Feed(StepDone{plan.number, AnyResult(&input_, plan)});
  }

  int events_ = 0;
  FuzzSessions<Command> sessions_{
      {[this](SessionId session) { harness_.Feed(SessionOpened{session}); },
       [this](SessionId session, Command command) {
         Received(session, command);
         harness_.Send(session.value(), std::move(command));
       },
       [this](SessionId session) { harness_.Feed(SessionLost{session}); }}};
};

}  // namespace baton::fuzz

#endif  // BATON_TESTS_FUZZ_COMMAND_FUZZER_H_
