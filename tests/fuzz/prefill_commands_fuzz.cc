// What routers may send a prefill worker, through hello checks and the real
// scheduler, with steps and transfers ending in any way. The harness checks
// holds and the ledger after every event; each attempt ends once and all
// blocks come back.
#include <cstdint>
#include <map>
#include <utility>

#include "tests/fuzz/command_fuzzer.h"
#include "tests/unit/prefill_worker/scheduler_harness.h"

namespace baton::prefill {
namespace {

class PrefillFuzzer final
    : public fuzz::CommandFuzzer<SchedulerHarness, v1::PrefillCommand> {
 public:
  explicit PrefillFuzzer(fuzz::FuzzInput input)
      : CommandFuzzer(input, 48, 32, 16) {}

 private:
  void Fill(uint32_t kind, v1::PrefillCommand* command) override {
    if (kind == 4) {
      command->mutable_cancel()->set_attempt_id(input_.Below(32));
      return;
    }
    if (kind == 3) {
      const v1::SequenceSpec spec = fuzz::AnySpec(&input_);
      const auto most = static_cast<uint32_t>(ContextTokensOf(spec)) / 16;
      const uint32_t attempt = input_.Below(32), landing = input_.Below(8);
      v1::PushPrefix* push = command->mutable_push();
      *push = SchedulerHarness::PushOf(attempt, landing, spec,
                                       1 + input_.Below(most + 1));
      if (const uint32_t off = input_.Byte(); off > 250) {
        push->mutable_ticket()->set_token_count(off);
      }
      push->set_deadline_ms(input_.Number<uint16_t>());
      return;
    }
    v1::StartPrefill* start = command->mutable_start();
    start->set_attempt_id(input_.Below(32));
    *start->mutable_sequence() = fuzz::AnySpec(&input_);
    start->mutable_ticket()->set_token_count(
        static_cast<uint32_t>(ContextTokensOf(start->sequence())) +
        (input_.Byte() == 255 ? 1 : 0));
    start->mutable_ticket()->set_timeout_ms(30000);
    start->set_deadline_ms(input_.Number<uint16_t>());
  }

  absl::Status CannotOpen() const override {
    return absl::UnavailableError("no");
  }

  void MoveKv() override {
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

  void EndKv() override {
    if (harness_.transfers.empty()) return;
    const auto& [id, transfer] = *harness_.transfers.begin();
    if (transfer.seal.has_value() && !transfer.failed) {
      harness_.Acknowledge(id);
    } else if (transfer.aborted || transfer.failed) {
      harness_.CloseTransfer(id);
    } else {
      harness_.Fail(id);
    }
  }

  // An attempt ends at most once on a session, and says nothing afterwards.
  void Count() override {
    for (auto& [session, said] : harness_.events) {
      for (const v1::PrefillEvent& event : std::exchange(said, {})) {
        if (event.has_failed()) {
          // A repeated id is refused while the first one runs.
          continue;
        }
        if (event.has_push_refused()) {
          BATON_CHECK(!event.push_refused().reason().empty());
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

  std::map<std::pair<SessionId, uint64_t>, int> first_;
};

}  // namespace
}  // namespace baton::prefill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 8 << 10) {
    baton::prefill::PrefillFuzzer(baton::fuzz::FuzzInput(data, size)).Run();
  }
  return 0;
}
