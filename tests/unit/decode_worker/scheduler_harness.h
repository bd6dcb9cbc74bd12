#ifndef BATON_TESTS_UNIT_DECODE_WORKER_SCHEDULER_HARNESS_H_
#define BATON_TESTS_UNIT_DECODE_WORKER_SCHEDULER_HARNESS_H_

#include <map>
#include <utility>
#include <vector>

#include "decode_worker/decode_scheduler.h"
#include "tests/unit/common/worker/scheduler_harness.h"

namespace baton::decode {

// A DecodeScheduler with a toy engine and a toy receiving side. Checks also
// that what a landing names stays held.
class SchedulerHarness
    : public toy::SchedulerHarness<SchedulerHarness, DecodeScheduler> {
 public:
  SchedulerHarness() : SchedulerHarness(Options()) {}
  explicit SchedulerHarness(DecodeOptions options)
      : toy::SchedulerHarness<SchedulerHarness, DecodeScheduler>(
            DecodeScheduler(std::move(options))) {}

  static DecodeOptions Options() {
    return {.epoch = WorkerEpoch(7),
            .blocks = 64,
            .budget = {.max_tokens = 32},
            .max_sequences = 16,
            .preempted_return = PreemptedReturn::kRecompute,
            .block_bytes = 1000,
            .fingerprint = std::string(32, 'f'),
            .transport = "toy",
            .limits = toy::Limits(),
            .vocabulary = toy::MakeVocabulary()};
  }

  struct Landing {
    JobId job;
    std::vector<BlockRef> blocks;
    uint32_t token_count = 0;
    Duration timeout{};
    bool cancelled = false;
    bool failed = false;
  };

  void Reserve(uint64_t session, uint64_t attempt, const v1::SequenceSpec& spec,
               uint32_t deadline_ms = 60000) {
    v1::DecodeCommand command;
    Fill(command.mutable_reserve(), attempt, spec, deadline_ms);
    Send(session, std::move(command));
  }
  void Serve(uint64_t session, uint64_t attempt, const v1::SequenceSpec& spec,
             uint32_t deadline_ms = 60000) {
    v1::DecodeCommand command;
    Fill(command.mutable_serve(), attempt, spec, deadline_ms);
    Send(session, std::move(command));
  }
  void Release(uint64_t session, uint64_t attempt) {
    v1::DecodeCommand command;
    command.mutable_release()->set_attempt_id(attempt);
    Send(session, std::move(command));
  }
  void RefusePush(uint64_t session, uint64_t attempt, LandingId landing,
                  bool gone = false) {
    v1::DecodeCommand command;
    command.mutable_push_refused()->set_attempt_id(attempt);
    command.mutable_push_refused()->set_landing_id(landing.value());
    command.mutable_push_refused()->set_reason(gone ? "not held" : "busy");
    command.mutable_push_refused()->set_gone(gone);
    Send(session, std::move(command));
  }
  void Open(absl::Status status = absl::OkStatus()) {
    OpenLanding open = opening.front();
    opening.erase(opening.begin());
    if (!status.ok()) {
      Feed(LandingOpened{open.job, status});
      return;
    }
    const LandingId id(next_landing++);
    landings[id] = {open.job,     open.blocks, open.token_count,
                    open.timeout, false,       false};
    v1::Ticket ticket;
    ticket.set_landing_id(id.value());
    ticket.set_token_count(open.token_count);
    Feed(LandingOpened{open.job, ticket});
  }
  // Everything arrived of what was asked back.
  void Pushed(LandingId id) { Verified(id, {}); }
  // Everything arrived; `tokens` are the first ones of choices 0, 1, ...
  void Verified(LandingId id, const std::vector<TokenId>& tokens,
                uint32_t index = 0) {
    const Landing landing = landings.at(id);
    landings.erase(id);
    transfer::LandingVerified event;
    event.landing = id;
    event.bytes = 1000;
    event.blocks = static_cast<uint32_t>(landing.blocks.size());
    event.transfer_time = std::chrono::milliseconds(3);
    for (uint32_t choice = 0; choice < tokens.size(); ++choice) {
      v1::TokenDelta* first = event.seal.add_first_tokens();
      first->set_choice(choice);
      first->set_index(index);
      first->set_token_id(tokens[choice]);
    }
    Feed(transfer::TransferEvent(std::move(event)));
  }
  void Progress(LandingId id, uint32_t blocks) {
    Feed(transfer::LandingProgress{id, blocks});
  }
  void Fail(LandingId id) {
    landings.at(id).failed = true;
    Feed(transfer::LandingFailed{id, absl::DataLossError("crc")});
  }
  void CloseLanding(LandingId id) {
    landings.erase(id);
    Feed(transfer::LandingClosed{id});
  }
  LandingId OnlyLanding() const { return landings.begin()->first; }

  void OpenPending() {
    while (!opening.empty()) Open();
  }
  void VerifyLinks() {
    for (const auto& [id, landing] : landings) {
      const bool over = landing.cancelled || landing.failed;
      for (const BlockRef& block : landing.blocks) {
        ASSERT_EQ(scheduler.pool().Holds(
                      block, over ? BlockUse::kQuarantine : BlockUse::kLanding),
                  1u);
      }
    }
  }
  void Take(OpenLanding action) { opening.push_back(std::move(action)); }
  void Take(CancelLanding action) {
    Landing& landing = landings.at(action.landing);
    ASSERT_FALSE(landing.cancelled || landing.failed);
    landing.cancelled = true;
  }

  std::vector<OpenLanding> opening;
  std::map<LandingId, Landing> landings;
  uint64_t next_landing = 1;
  // Of the requests that follow.
  uint64_t request_id = 0;
  uint32_t waited_ms = 0;

 private:
  template <class Wanted>
  void Fill(Wanted* wanted, uint64_t attempt, const v1::SequenceSpec& spec,
            uint32_t deadline_ms) const {
    wanted->set_request_id(request_id);
    wanted->set_waited_ms(waited_ms);
    wanted->set_attempt_id(attempt);
    *wanted->mutable_sequence() = spec;
    wanted->set_deadline_ms(deadline_ms);
  }
};

}  // namespace baton::decode

#endif  // BATON_TESTS_UNIT_DECODE_WORKER_SCHEDULER_HARNESS_H_
