#ifndef BATON_TESTS_UNIT_DECODE_WORKER_SCHEDULER_HARNESS_H_
#define BATON_TESTS_UNIT_DECODE_WORKER_SCHEDULER_HARNESS_H_

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "decode_worker/decode_scheduler.h"
#include "tests/unit/common/worker/toy_worker.h"

namespace baton::decode {

// A DecodeScheduler with a toy engine and a toy receiving side. Checks after
// every event that the ledger balances, that what a step or a landing names
// stays held, and that no two choices write the same block.
class SchedulerHarness {
 public:
  SchedulerHarness() : SchedulerHarness(Options()) {}
  explicit SchedulerHarness(DecodeOptions options)
      : scheduler(std::move(options)) {}

  static DecodeOptions Options() {
    return {.epoch = WorkerEpoch(7),
            .blocks = 64,
            .step_token_budget = 32,
            .max_sequences = 16,
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

  void Feed(Event event) {
    for (Action& action : scheduler.Handle(std::move(event), now)) {
      std::visit([this](auto&& a) { Take(std::move(a)); }, std::move(action));
    }
    while (auto_open && !opening.empty()) Open();
    Verify();
  }
  void Verify() {
    const BlockPool& pool = scheduler.pool();
    ASSERT_TRUE(pool.Audit().ok()) << pool.Audit();
    if (step.has_value()) {
      for (const PlannedSpan& span : step->spans) {
        for (const BlockRef& block : span.blocks) {
          ASSERT_GE(pool.Holds(block, BlockUse::kRunning), 1u);
        }
      }
    }
    for (const auto& [id, landing] : landings) {
      const bool over = landing.cancelled || landing.failed;
      for (const BlockRef& block : landing.blocks) {
        ASSERT_EQ(pool.Holds(block,
                             over ? BlockUse::kQuarantine : BlockUse::kLanding),
                  1u);
      }
    }
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
  void OpenSession(uint64_t session) {
    Feed(SessionOpened{SessionId(session)});
  }
  void Reserve(uint64_t session, uint64_t attempt, const v1::SequenceSpec& spec,
               uint32_t deadline_ms = 60000) {
    v1::DecodeCommand command;
    command.mutable_reserve()->set_attempt_id(attempt);
    *command.mutable_reserve()->mutable_sequence() = spec;
    command.mutable_reserve()->set_deadline_ms(deadline_ms);
    Feed(CommandReceived{SessionId(session), command});
  }
  void Serve(uint64_t session, uint64_t attempt, const v1::SequenceSpec& spec,
             uint32_t deadline_ms = 60000) {
    v1::DecodeCommand command;
    command.mutable_serve()->set_attempt_id(attempt);
    *command.mutable_serve()->mutable_sequence() = spec;
    command.mutable_serve()->set_deadline_ms(deadline_ms);
    Feed(CommandReceived{SessionId(session), command});
  }
  void Release(uint64_t session, uint64_t attempt) {
    v1::DecodeCommand command;
    command.mutable_release()->set_attempt_id(attempt);
    Feed(CommandReceived{SessionId(session), command});
  }
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
  void Fail(LandingId id) {
    landings.at(id).failed = true;
    Feed(transfer::LandingFailed{id, absl::DataLossError("crc")});
  }
  void CloseLanding(LandingId id) {
    landings.erase(id);
    Feed(transfer::LandingClosed{id});
  }
  void FinishStep(const toy::DrawToken& token = toy::AnyToken) {
    ASSERT_TRUE(step.has_value());
    StepPlan plan = *std::exchange(step, std::nullopt);
    Feed(StepDone{plan.number, toy::RunToy(plan, token)});
  }
  void FinishAllSteps(const toy::DrawToken& token = toy::AnyToken) {
    while (step.has_value()) FinishStep(token);
  }
  LandingId OnlyLanding() const { return landings.begin()->first; }

  // Events of a session other than load reports, oldest first.
  std::vector<v1::DecodeEvent> TakeEvents(uint64_t session) {
    return std::exchange(events[SessionId(session)], {});
  }
  const Ledger& ledger() const { return scheduler.pool().ledger(); }
  bool AllFree() const { return ledger().free == scheduler.pool().size(); }

  DecodeScheduler scheduler;
  MonotonicTime now{std::chrono::hours(1)};
  bool auto_open = true;
  std::optional<StepPlan> step;
  std::vector<OpenLanding> opening;
  std::map<LandingId, Landing> landings;
  std::map<SessionId, std::vector<v1::DecodeEvent>> events;
  std::map<SessionId, v1::WorkerLoad> loads;
  uint64_t next_landing = 1;

 private:
  void Take(RunStep action) {
    ASSERT_FALSE(step.has_value()) << "two steps at once";
    step = std::move(action.plan);
    std::set<uint32_t> written;
    for (const PlannedSpan& span : step->spans) {
      const uint32_t end =
          span.first_position + static_cast<uint32_t>(span.tokens.size());
      ASSERT_EQ(span.blocks.size(), BlocksFor(end));
      for (size_t b = span.first_position / kBlockTokens;
           b < span.blocks.size(); ++b) {
        ASSERT_TRUE(written.insert(span.blocks[b].id.value()).second)
            << "two spans write one block";
        ASSERT_EQ(scheduler.pool().Holds(span.blocks[b], BlockUse::kRunning),
                  1u)
            << "a shared block is written";
      }
    }
    for (const BlockRef& block : step->cleared) {
      ASSERT_TRUE(written.contains(block.id.value()));
    }
    for (const BlockCopy& copy : step->copies) {
      ASSERT_TRUE(written.contains(copy.to.id.value()));
    }
  }
  void Take(OpenLanding action) { opening.push_back(std::move(action)); }
  void Take(CancelLanding action) {
    Landing& landing = landings.at(action.landing);
    ASSERT_FALSE(landing.cancelled || landing.failed);
    landing.cancelled = true;
  }
  void Take(SendEvent action) {
    if (action.event.has_load()) {
      loads[action.session] = action.event.load();
    } else {
      events[action.session].push_back(std::move(action.event));
    }
  }
};

}  // namespace baton::decode

#endif  // BATON_TESTS_UNIT_DECODE_WORKER_SCHEDULER_HARNESS_H_
