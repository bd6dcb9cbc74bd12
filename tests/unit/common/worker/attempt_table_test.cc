#include "common/worker/attempt_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

constexpr MonotonicTime kStart{std::chrono::hours(1)};

struct TestJob : AttemptJob {
  int payload = 0;
};

TestJob MakeJob(uint64_t session, uint64_t attempt, int deadline_s) {
  TestJob job;
  job.session = SessionId(session);
  job.attempt = AttemptId(attempt);
  job.deadline = kStart + seconds(deadline_s);
  return job;
}

TEST(AttemptTable, SameAttemptIdOfTwoSessionsAreTwoJobs) {
  AttemptTable<TestJob> table;
  const JobId first = table.Add(MakeJob(1, 5, 10)).id;
  const JobId second = table.Add(MakeJob(2, 5, 10)).id;
  EXPECT_NE(first, second);
  EXPECT_EQ(table.Find(SessionId(1), AttemptId(5))->id, first);
  EXPECT_EQ(table.Find(SessionId(2), AttemptId(5))->id, second);
  EXPECT_EQ(table.Find(SessionId(1), AttemptId(6)), nullptr);
  EXPECT_THAT(table.OpenOf(SessionId(2)), ElementsAre(second));
  EXPECT_THAT(table.Open(), ElementsAre(first, second));
}

TEST(AttemptTable, AClosedJobIsKnownByItsIdOnly) {
  AttemptTable<TestJob> table;
  TestJob& job = table.Add(MakeJob(1, 5, 10));
  job.payload = 7;
  const JobId id = job.id;
  table.Close(job);
  EXPECT_EQ(table.Find(SessionId(1), AttemptId(5)), nullptr);
  EXPECT_EQ(table.Expired(kStart + seconds(100)), nullptr);
  EXPECT_EQ(table.NextDeadline(), kNever);
  EXPECT_EQ(table.open(), 0u);
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.at(id).payload, 7);

  const JobId again = table.Add(MakeJob(1, 5, 10)).id;
  EXPECT_NE(again, id) << "job ids are never reused";
  table.Erase(id);
  EXPECT_EQ(table.Find(SessionId(1), AttemptId(5))->id, again);
}

TEST(AttemptTable, DeadlinesExpireInOrder) {
  AttemptTable<TestJob> table;
  table.Add(MakeJob(1, 1, 30));
  table.Add(MakeJob(1, 2, 10));
  table.Add(MakeJob(1, 3, 20));
  EXPECT_EQ(table.NextDeadline(), kStart + seconds(10));
  EXPECT_EQ(table.Expired(kStart + seconds(9)), nullptr);
  std::vector<uint64_t> expired;
  while (TestJob* job = table.Expired(kStart + seconds(20))) {
    expired.push_back(job->attempt.value());
    table.Close(*job);
  }
  EXPECT_THAT(expired, ElementsAre(2, 3));
  EXPECT_EQ(table.NextDeadline(), kStart + seconds(30));
}

}  // namespace
}  // namespace baton
