#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/unit/prefill_worker/scheduler_harness.h"

namespace baton::prefill {
namespace {

// Random commands, step completions and transfer ends in any order; the
// harness checks the ledger after every event.
class RandomPrefill : public testing::TestWithParam<int> {
 protected:
  uint32_t Draw(uint32_t below) { return random_() % below; }

  TransferId AnyTransfer() {
    auto it = h_.transfers.begin();
    std::advance(it, Draw(static_cast<uint32_t>(h_.transfers.size())));
    return it->first;
  }
  void MoveTransfer() {
    const TransferId id = AnyTransfer();
    const auto& transfer = h_.transfers.at(id);
    if (transfer.aborted || transfer.failed) {
      if (transfer.seal.has_value() && Draw(4) == 0 && !transfer.failed) {
        h_.Acknowledge(id);
      } else {
        h_.CloseTransfer(id);
      }
    } else if (transfer.seal.has_value() && Draw(3) > 0) {
      h_.Acknowledge(id);
    } else if (Draw(8) == 0) {
      h_.Fail(id);
    }
  }
  void Count(uint64_t session) {
    for (const v1::PrefillEvent& event : h_.TakeEvents(session)) {
      uint64_t attempt = 0;
      if (event.has_failed()) {
        attempt = event.failed().attempt_id();
      } else if (event.has_handed_over()) {
        attempt = event.handed_over().attempt_id();
      } else if (event.has_push_refused()) {
        continue;
      } else {
        const auto& tokens = event.first_tokens().tokens();
        for (const auto& token : tokens) {
          if (!token.has_finish()) attempt = UINT64_MAX;
        }
        if (attempt == UINT64_MAX) continue;
        attempt = event.first_tokens().attempt_id();
      }
      ASSERT_EQ((++endings_[{session, attempt}]), 1) << "ended twice";
    }
  }

  // Of what an attempt has computed or will; now and then of no such thing.
  void Push(uint64_t session) {
    const v1::SequenceSpec spec = toy::MakeSpec(300, 3);
    const uint64_t attempt = Draw(200);
    v1::PushPrefix push = SchedulerHarness::PushOf(
        attempt, next_landing_, spec, 1 + Draw(Draw(8) == 0 ? 18 : 4));
    if (Draw(4) > 0) ++next_landing_;
    if (Draw(20) == 0) push.mutable_ticket()->set_held_tokens(16);
    if (Draw(10) == 0) push.set_deadline_ms(Draw(50));
    h_.Push(session, push);
  }

  uint64_t next_landing_ = 1;
  std::mt19937 random_{static_cast<uint32_t>(GetParam())};
  SchedulerHarness h_{48, 32};
  std::map<std::pair<uint64_t, uint64_t>, int> endings_;
};

TEST_P(RandomPrefill, LedgerBalancesAndEverythingComesBack) {
  uint64_t next_attempt = 1;
  h_.OpenSession(1);
  h_.OpenSession(2);
  uint64_t sessions[] = {1, 2};
  uint64_t next_session = 3;
  for (int event = 0; event < 3000; ++event) {
    h_.now += std::chrono::milliseconds(Draw(10));
    h_.auto_open = Draw(2) == 0;
    uint64_t& session = sessions[Draw(2)];
    switch (Draw(14)) {
      case 12:
      case 13:
        Push(session);
        break;
      case 0:
      case 1:
        h_.Start(session, next_attempt++,
                 toy::MakeSpec(1 + Draw(300), 1 + Draw(3), 1 + Draw(3)),
                 Draw(20) == 0 ? Draw(50) : 100000);
        break;
      case 2:
        h_.Cancel(session, next_attempt - 1 - Draw(8));
        break;
      case 3:
        if (Draw(40) == 0) {
          h_.Feed(SessionLost{SessionId(session)});
          session = next_session++;
          h_.OpenSession(session);
        } else {
          h_.Feed(Tick{});
        }
        break;
      case 4:
        if (!h_.opening.empty()) {
          h_.Open(Draw(10) == 0 ? absl::UnavailableError("no")
                                : absl::OkStatus());
        }
        break;
      case 5:
      case 6:
      case 7:
        if (!h_.transfers.empty()) MoveTransfer();
        break;
      default:
        if (h_.step.has_value()) {
          h_.FinishStep([this](const DrawRequest&) {
            return Draw(4) == 0 ? toy::kEnd : TokenId{5};
          });
        }
    }
    for (uint64_t s : sessions) Count(s);
    if (HasFatalFailure()) return;
  }
  h_.Feed(DrainStarted{});
  h_.auto_open = true;
  for (int i = 0; i < 10000 && !h_.scheduler.idle(); ++i) {
    if (h_.step.has_value()) h_.FinishStep();
    if (!h_.opening.empty()) h_.Open();
    if (!h_.transfers.empty()) MoveTransfer();
  }
  EXPECT_TRUE(h_.scheduler.idle());
  EXPECT_TRUE(h_.AllFreeOrCached()) << h_.ledger().ToString();
  const PushCounters& pushes = h_.scheduler.counters().pushes;
  EXPECT_GT(pushes.acked, 0u);
  EXPECT_GT(pushes.failed, 0u);
  EXPECT_GT(pushes.cancelled, 0u);
  EXPECT_GT(pushes.refused, 0u);
  EXPECT_GT(h_.scheduler.prefixes().evicted(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrefill, testing::Range(1, 21));

TEST(PrefillCancel, ThousandCancelsReturnThePool) {
  std::mt19937 random(7);
  SchedulerHarness h(64, 32);
  h.OpenSession(1);
  for (uint64_t attempt = 1; attempt <= 1000; ++attempt) {
    h.Start(1, attempt, toy::MakeSpec(1 + random() % 400, 5));
    const int phase = static_cast<int>(random() % 8);
    for (int i = 0; i < phase && h.step.has_value(); ++i) h.FinishStep();
    h.Cancel(1, attempt);
    while (h.step.has_value()) h.FinishStep();
    while (!h.transfers.empty()) {
      const auto& [id, transfer] = *h.transfers.begin();
      if (transfer.seal.has_value() && random() % 2 == 0) {
        h.Acknowledge(id);
      } else {
        h.CloseTransfer(id);
      }
    }
    ASSERT_TRUE(h.AllFree()) << attempt << ": cancelled, so not cached";
    ASSERT_TRUE(h.scheduler.idle()) << attempt;
  }
}

}  // namespace
}  // namespace baton::prefill
