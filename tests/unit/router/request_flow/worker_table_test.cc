#include "router/request_flow/worker_table.h"

#include <gtest/gtest.h>

#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {
namespace {

constexpr WorkerIndex kP{1};
constexpr WorkerIndex kD{2};

MonotonicTime At(int s) { return MonotonicTime(std::chrono::seconds(s)); }

class WorkerTableTest : public ::testing::Test {
 protected:
  WorkerTableTest() {
    table_.Add({kP, v1::WORKER_ROLE_PREFILL, "host:1"});
    table_.Add({kD, v1::WORKER_ROLE_DECODE, "host:2"});
  }
  static SessionUp PrefillUp() {
    return {kP, v1::WORKER_ROLE_PREFILL,
            CoreDriver::Hello("p", v1::WORKER_ROLE_PREFILL)};
  }
  static SessionUp DecodeUp() {
    return {kD, v1::WORKER_ROLE_DECODE,
            CoreDriver::Hello("d", v1::WORKER_ROLE_DECODE)};
  }

  WorkerTable table_{WorkerTable::Options{.vocabulary_size = kVocabulary,
                                          .startup_end = At(10)}};
};

TEST_F(WorkerTableTest, HelloMakesAWorkerReady) {
  EXPECT_EQ(table_.Find(kP)->state, WorkerState::kConnecting);
  ASSERT_TRUE(table_.Up(PrefillUp(), At(1)).ok());
  EXPECT_EQ(table_.Find(kP)->state, WorkerState::kReady);
  EXPECT_EQ(DisplayName(*table_.Find(kP)), "p (host:1)");
  EXPECT_EQ(DisplayName(*table_.Find(kD)), "host:2");
}

TEST_F(WorkerTableTest, ANewProcessAtAnAddressStartsWithoutLimit) {
  SessionUp up = DecodeUp();
  up.hello.set_worker_epoch(5);
  ASSERT_TRUE(table_.Up(up, At(1)).ok());
  ConcurrencyLimit& limit = table_.Find(kD)->concurrency;
  limit.Late(40, At(1), At(2));
  const uint32_t halved = limit.limit();
  EXPECT_LE(halved, 40u);
  ASSERT_TRUE(table_.Up(up, At(3)).ok());
  EXPECT_EQ(table_.Find(kD)->concurrency.limit(), halved);
  up.hello.set_worker_epoch(6);
  ASSERT_TRUE(table_.Up(up, At(4)).ok());
  EXPECT_EQ(table_.Find(kD)->concurrency.limit(), ConcurrencyLimit::kNone);
}

// A load that crosses the command of a placement says nothing of it.
TEST_F(WorkerTableTest, ALoadFromBeforeAPlacementDoesNotCountIt) {
  ASSERT_TRUE(table_.Up(DecodeUp(), At(1)).ok());
  WorkerView* decode = table_.Find(kD);
  v1::WorkerLoad load;
  load.set_spare_blocks(100);
  load.set_newest_attempt(4);
  decode->unseen.Add(AttemptId(5), 30);
  ASSERT_TRUE(WorkerTable::ApplyLoad(decode, load, At(2)).ok());
  EXPECT_EQ(decode->SpareBlocks(), 70u);
  load.set_newest_attempt(5);
  load.set_spare_blocks(65);
  ASSERT_TRUE(WorkerTable::ApplyLoad(decode, load, At(2)).ok());
  EXPECT_EQ(decode->SpareBlocks(), 65u);
  decode->unseen.Add(AttemptId(6), 30);
  ASSERT_TRUE(table_.Up(DecodeUp(), At(3)).ok());
  EXPECT_EQ(decode->unseen.blocks(), 0u) << "of another session";
}

TEST_F(WorkerTableTest, WrongProtocolOrRoleEndsTheSession) {
  SessionUp up = PrefillUp();
  up.hello.set_protocol(2);
  EXPECT_EQ(table_.Up(up, At(1)).message(),
            "protocol: not supported (got 2, allowed 1)");
  up = PrefillUp();
  up.hello.set_role(v1::WORKER_ROLE_DECODE);
  EXPECT_EQ(table_.Up(up, At(1)).message(),
            "role: another kind of worker listens there (got decode, allowed "
            "prefill)");
}

TEST_F(WorkerTableTest, ForeignModelsAreIncompatibleWithAReason) {
  SessionUp up = DecodeUp();
  up.hello.set_vocabulary_size(7);
  ASSERT_TRUE(table_.Up(up, At(1)).ok());
  EXPECT_EQ(table_.Find(kD)->state, WorkerState::kIncompatible);
  EXPECT_EQ(table_.Find(kD)->detail,
            "vocabulary_size: differs from the router's model (got 7, allowed "
            "1000)");
  v1::WorkerLoad load;
  ASSERT_TRUE(WorkerTable::ApplyLoad(table_.Find(kD), load, At(1)).ok());
  EXPECT_EQ(table_.Find(kD)->state, WorkerState::kIncompatible);

  up = DecodeUp();
  up.hello.set_fingerprint(std::string(1 << 20, 'x'));
  ASSERT_TRUE(table_.Up(up, At(1)).ok());
  EXPECT_EQ(table_.Find(kD)->detail,
            "fingerprint: wrong length (got 1048576 bytes, allowed 32)");
  up = DecodeUp();
  up.hello.set_block_tokens(32);
  ASSERT_TRUE(table_.Up(up, At(1)).ok());
  EXPECT_EQ(table_.Find(kD)->state, WorkerState::kIncompatible);
}

TEST_F(WorkerTableTest, SequenceGapsAreNoticed) {
  ASSERT_TRUE(table_.Up(PrefillUp(), At(1)).ok());
  WorkerView* p = table_.Find(kP);
  EXPECT_TRUE(WorkerTable::CountEvent(p, 2, At(1)).ok());
  EXPECT_EQ(WorkerTable::CountEvent(p, 4, At(1)).message(),
            "sequence: events lost or repeated (got 4, allowed 3)");
  EXPECT_FALSE(WorkerTable::CountEvent(p, 2, At(1)).ok());
}

TEST_F(WorkerTableTest, DrainingComesAndGoes) {
  ASSERT_TRUE(table_.Up(DecodeUp(), At(1)).ok());
  v1::WorkerLoad load;
  load.set_draining(true);
  ASSERT_TRUE(WorkerTable::ApplyLoad(table_.Find(kD), load, At(1)).ok());
  EXPECT_EQ(table_.Find(kD)->state, WorkerState::kDraining);
  load.set_draining(false);
  ASSERT_TRUE(WorkerTable::ApplyLoad(table_.Find(kD), load, At(1)).ok());
  EXPECT_EQ(table_.Find(kD)->state, WorkerState::kReady);
}

TEST_F(WorkerTableTest, CreditIsForgottenWithTheSession) {
  ASSERT_TRUE(table_.Up(DecodeUp(), At(1)).ok());
  v1::WorkerLoad load;
  load.set_granted_prefill_tokens(100);
  ASSERT_TRUE(WorkerTable::ApplyLoad(table_.Find(kD), load, At(1)).ok());
  table_.Find(kD)->credit.Start(50, table_.Find(kD)->hello);
  EXPECT_TRUE(table_.AnyCredit());
  table_.Down(table_.Find(kD), absl::UnavailableError("x"));
  EXPECT_FALSE(table_.AnyCredit());
  ASSERT_TRUE(table_.Up(DecodeUp(), At(2)).ok());
  EXPECT_FALSE(table_.AnyCredit());
  load.set_granted_prefill_tokens(50);
  ASSERT_TRUE(WorkerTable::ApplyLoad(table_.Find(kD), load, At(2)).ok());
  EXPECT_TRUE(table_.AnyCredit()) << "nothing of it was started";
}

TEST_F(WorkerTableTest, CostsThatCannotBeAreRefused) {
  ASSERT_TRUE(table_.Up(DecodeUp(), At(1)).ok());
  v1::WorkerLoad load;
  load.mutable_step_costs()->set_fixed(-1);
  EXPECT_FALSE(WorkerTable::ApplyLoad(table_.Find(kD), load, At(1)).ok());
  EXPECT_FALSE(table_.Find(kD)->costs.has_value());
}

TEST_F(WorkerTableTest, CompleteNeedsAPairWhilePrefillIsExpected) {
  EXPECT_FALSE(table_.Complete(At(1)));
  ASSERT_TRUE(table_.Up(DecodeUp(), At(1)).ok());
  EXPECT_TRUE(table_.Expected(v1::WORKER_ROLE_PREFILL, At(9)));
  EXPECT_FALSE(table_.Complete(At(9)));
  EXPECT_TRUE(table_.Complete(At(10))) << "start-up is over";
  SessionUp up = DecodeUp();
  up.hello.set_disaggregation(v1::DISAGGREGATION_NEVER);
  ASSERT_TRUE(table_.Up(up, At(1)).ok());
  EXPECT_TRUE(table_.Complete(At(9))) << "an aggregated worker is enough";
  ASSERT_TRUE(table_.Up(DecodeUp(), At(1)).ok());
  ASSERT_TRUE(table_.Up(PrefillUp(), At(1)).ok());
  EXPECT_TRUE(table_.Complete(At(9)));
  table_.Down(table_.Find(kP), absl::UnavailableError("x"));
  EXPECT_TRUE(table_.Complete(At(9))) << "it was seen, so D serves alone now";
}

TEST_F(WorkerTableTest, ConfiguredRolesAreExpectedBeforeTheyAreKnown) {
  WorkerTable table({kVocabulary, At(10), /*prefill_configured=*/false,
                     /*decode_configured=*/true});
  EXPECT_FALSE(table.Expected(v1::WORKER_ROLE_PREFILL, At(9)));
  EXPECT_TRUE(table.Expected(v1::WORKER_ROLE_DECODE, At(9)));
  EXPECT_FALSE(table.Expected(v1::WORKER_ROLE_DECODE, At(10)));
  table.Add({kD, v1::WORKER_ROLE_DECODE, "host:2"});
  ASSERT_TRUE(table.Up(DecodeUp(), At(1)).ok());
  table.Down(table.Find(kD), absl::UnavailableError("x"));
  EXPECT_FALSE(table.Expected(v1::WORKER_ROLE_DECODE, At(9)));
}

TEST_F(WorkerTableTest, MaxContextIsOfReadyDecodeWorkers) {
  EXPECT_EQ(table_.MaxContextTokens(), 0u);
  ASSERT_TRUE(table_.Up(PrefillUp(), At(1)).ok());
  EXPECT_EQ(table_.MaxContextTokens(), 0u);
  ASSERT_TRUE(table_.Up(DecodeUp(), At(1)).ok());
  EXPECT_EQ(table_.MaxContextTokens(), 2048u);
}

}  // namespace
}  // namespace baton::router
