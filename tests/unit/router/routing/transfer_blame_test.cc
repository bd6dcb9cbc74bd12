#include "router/routing/transfer_blame.h"

#include <gtest/gtest.h>

#include <map>

namespace baton::router {
namespace {

class TransferBlameTest : public ::testing::Test {
 protected:
  TransferSide Fail(uint32_t p, uint32_t d) {
    ++now_;
    return RecordTransferFailure(WorkerIndex(p), &records_[p], WorkerIndex(d),
                                 &records_[d], MonotonicTime(Duration(now_)));
  }
  void Land(uint32_t p, uint32_t d) {
    ++now_;
    RecordLanding(WorkerIndex(p), &records_[p], WorkerIndex(d), &records_[d],
                  MonotonicTime(Duration(now_)));
  }
  std::map<uint32_t, TransferRecord> records_;
  int64_t now_ = 0;
};

constexpr uint32_t kP1 = 1, kP2 = 2, kD1 = 11, kD2 = 12;

TEST_F(TransferBlameTest, ThePrefillWorkerThatFailsWithEverybody) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Fail(kP1, i % 2 == 0 ? kD1 : kD2), TransferSide::kNone);
    Land(kP2, kD1);
    Land(kP2, kD2);
  }
  EXPECT_EQ(Fail(kP1, kD1), TransferSide::kPrefill);
}

TEST_F(TransferBlameTest, TheDecodeWorkerThatFailsWithEverybody) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Fail(i % 2 == 0 ? kP1 : kP2, kD1), TransferSide::kNone);
    Land(kP1, kD2);
    Land(kP2, kD2);
  }
  EXPECT_EQ(Fail(kP1, kD1), TransferSide::kDecode);
}

TEST_F(TransferBlameTest, WithOnePrefillWorkerTheOneItLandsWithClearsIt) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Fail(kP1, kD1), TransferSide::kNone);
    Land(kP1, kD2);
  }
  EXPECT_EQ(Fail(kP1, kD1), TransferSide::kDecode);
}

TEST_F(TransferBlameTest, AVolleyAloneBlamesNobody) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Fail(kP1, kD1), TransferSide::kNone) << i;
  }
  Land(kP1, kD2);
  EXPECT_EQ(Fail(kP1, kD1), TransferSide::kDecode);
}

TEST_F(TransferBlameTest, WithoutASignThePrefillWorkerGoes) {
  for (int i = 0; i < 9; ++i) EXPECT_EQ(Fail(kP1, kD1), TransferSide::kNone);
  EXPECT_EQ(Fail(kP1, kD1), TransferSide::kPrefill);
  EXPECT_EQ(Fail(kP1, kD1), TransferSide::kNone) << "counted anew";
}

TEST_F(TransferBlameTest, OldLandingsClearNobody) {
  Land(kP1, kD2);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(Fail(kP1, kD1), TransferSide::kNone);
}

TEST_F(TransferBlameTest, ALandingForgivesBoth) {
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(Fail(kP1, kD1), TransferSide::kNone);
      EXPECT_EQ(Fail(kP1, kD1), TransferSide::kNone);
    }
    Land(kP1, kD1);
  }
}

}  // namespace
}  // namespace baton::router
