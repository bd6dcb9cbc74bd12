#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/unit/decode_worker/scheduler_harness.h"

namespace baton::decode {
namespace {

class RandomDecode : public testing::TestWithParam<int> {
 protected:
  RandomDecode() {
    DecodeOptions options = SchedulerHarness::Options();
    if (GetParam() % 4 == 0) options.batching = Batching::kStatic;
    if (GetParam() % 3 == 0) options.blocks = 30;
    if (GetParam() % 2 == 0) options.length_quantile = 0;
    if (GetParam() % 5 == 0) options.forced_preemptions = 2;
    h_.emplace(options);
  }
  uint32_t Draw(uint32_t below) { return random_() % below; }

  v1::SequenceSpec AnySpec(uint32_t choices) {
    v1::SequenceSpec spec = toy::MakeSpec(1 + Draw(200), 1 + Draw(40), choices);
    spec.set_priority(Draw(3));
    return spec;
  }
  void MoveLanding() {
    auto it = h_->landings.begin();
    std::advance(it, Draw(static_cast<uint32_t>(h_->landings.size())));
    const LandingId id = it->first;
    const bool over = it->second.cancelled || it->second.failed;
    if (it->second.failed || (over && Draw(4) > 0)) {
      h_->CloseLanding(id);
    } else if (Draw(6) > 0) {
      std::vector<TokenId> tokens(choices_.at(it->second.job));
      for (TokenId& token : tokens) {
        token = Draw(4) == 0 ? toy::kEnd : TokenId{9};
      }
      if (Draw(10) == 0) tokens.push_back(9);
      h_->Verified(id, tokens);
    } else if (!over) {
      h_->Fail(id);
    }
  }
  void Count(uint64_t session) {
    for (const v1::DecodeEvent& event : h_->TakeEvents(session)) {
      if (event.has_failed()) {
        ASSERT_EQ((++ends_[{session, event.failed().attempt_id()}]), 1);
      } else if (event.has_done()) {
        ASSERT_EQ((++ends_[{session, event.done().attempt_id()}]), 1);
      } else if (event.has_refused()) {
        ASSERT_EQ((++ends_[{session, event.refused().attempt_id()}]), 1);
      }
      for (const auto& token : event.tokens().tokens()) {
        ASSERT_FALSE((ends_.contains({session, token.attempt_id()})));
      }
    }
  }
  void NoteOpenings() {
    for (const OpenLanding& open : h_->opening) {
      choices_.emplace(open.job, last_choices_);
    }
  }

  std::mt19937 random_{static_cast<uint32_t>(GetParam())};
  std::optional<SchedulerHarness> h_;
  uint32_t last_choices_ = 1;
  std::map<JobId, uint32_t> choices_;
  std::map<std::pair<uint64_t, uint64_t>, int> ends_;
};

TEST_P(RandomDecode, LedgerBalancesAndEverythingComesBack) {
  uint64_t next_attempt = 1;
  uint64_t sessions[] = {1, 2};
  uint64_t next_session = 3;
  h_->OpenSession(1);
  h_->OpenSession(2);
  h_->auto_open = false;
  auto open = [&] {
    h_->Open(Draw(12) == 0 ? absl::ResourceExhaustedError("no")
                           : absl::OkStatus());
  };
  for (int event = 0; event < 3000; ++event) {
    h_->now += std::chrono::milliseconds(Draw(10));
    uint64_t& session = sessions[Draw(2)];
    const uint32_t deadline = Draw(20) == 0 ? Draw(60) : 100000;
    switch (Draw(12)) {
      case 0:
        last_choices_ = 1 + Draw(3);
        h_->Reserve(session, next_attempt++, AnySpec(last_choices_), deadline);
        NoteOpenings();
        break;
      case 1:
        h_->Serve(session, next_attempt++, AnySpec(1 + Draw(3)), deadline);
        break;
      case 2:
        h_->Release(session, next_attempt - 1 - Draw(8));
        break;
      case 3:
        if (Draw(40) == 0) {
          h_->Feed(SessionLost{SessionId(session)});
          session = next_session++;
          h_->OpenSession(session);
        } else {
          h_->Feed(Tick{});
        }
        break;
      case 4:
      case 5:
        if (!h_->opening.empty()) open();
        break;
      case 6:
      case 7:
        if (!h_->landings.empty()) MoveLanding();
        break;
      default:
        if (h_->step.has_value()) {
          h_->FinishStep([this](const DrawRequest&) {
            return Draw(12) == 0 ? toy::kEnd : TokenId{5};
          });
        }
    }
    for (uint64_t s : sessions) Count(s);
    if (HasFatalFailure()) return;
  }
  h_->Feed(DrainStarted{});
  for (int i = 0; i < 10000 && !h_->scheduler.idle(); ++i) {
    if (h_->step.has_value()) h_->FinishStep();
    if (!h_->opening.empty()) open();
    if (!h_->landings.empty()) MoveLanding();
  }
  EXPECT_TRUE(h_->scheduler.idle());
  EXPECT_TRUE(h_->AllFree()) << h_->ledger().ToString();
  EXPECT_EQ(h_->scheduler.Load().waiting_sequences(), 0u);
  EXPECT_LE(h_->scheduler.counters().most_preemptions, 3u);
  if (GetParam() % 5 == 0) {
    EXPECT_GT(h_->scheduler.counters().preemptions, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDecode, testing::Range(1, 25));

TEST(DecodeRelease, ThousandReleasesReturnThePool) {
  std::mt19937 random(7);
  SchedulerHarness h;
  h.OpenSession(1);
  for (uint64_t attempt = 1; attempt <= 1000; ++attempt) {
    const auto spec =
        toy::MakeSpec(1 + random() % 300, 1 + random() % 50, 1 + random() % 2);
    const bool local = random() % 2 == 0;
    if (local) {
      h.Serve(1, attempt, spec);
    } else {
      h.Reserve(1, attempt, spec);
      if (!h.landings.empty() && random() % 3 > 0) {
        h.Verified(h.OnlyLanding(),
                   std::vector<TokenId>(spec.choices_size(), TokenId{9}));
      }
    }
    const int phase = static_cast<int>(random() % 20);
    for (int i = 0; i < phase && h.step.has_value(); ++i) h.FinishStep();
    h.Release(1, attempt);
    if (h.step.has_value()) h.FinishStep();
    while (!h.landings.empty()) h.CloseLanding(h.OnlyLanding());
    ASSERT_FALSE(h.step.has_value()) << attempt;
    ASSERT_TRUE(h.AllFree()) << attempt;
    ASSERT_TRUE(h.scheduler.idle()) << attempt;
  }
}

}  // namespace
}  // namespace baton::decode
