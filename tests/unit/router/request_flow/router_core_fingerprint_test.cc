// Case 58: while two versions of a model are up, no answer mixes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/router/request_flow/core_driver.h"

namespace baton::router {
namespace {

using ::testing::HasSubstr;

class FingerprintTest : public ::testing::Test {
 protected:
  WorkerIndex AddOther(const std::string& id, v1::WorkerRole role) {
    v1::WorkerHello hello = CoreDriver::Hello(id, role);
    hello.set_fingerprint(std::string(32, 'x'));
    const WorkerIndex worker(next_other_++);
    driver_.Handle(WorkerAdded{worker, role, id});
    driver_.Up(worker, hello);
    driver_.Credit(worker, 1 << 20);
    return worker;
  }

  CoreDriver driver_;
  uint32_t next_other_ = 50;
};

TEST_F(FingerprintTest, WithoutATokenAnyVersionMayTakeOver) {
  const WorkerIndex prefill = driver_.AddPrefill("p");
  const WorkerIndex decode = driver_.AddDecode("d");
  const RequestId id = driver_.Ask();
  driver_.Reserved(decode, driver_.last_attempt());
  AddOther("p-next", v1::WORKER_ROLE_PREFILL);
  AddOther("d-next", v1::WORKER_ROLE_DECODE);
  const AttemptId first = driver_.last_attempt();
  driver_.Down(decode);
  driver_.Down(prefill);
  EXPECT_FALSE(driver_.answer(id).status.has_value());
  EXPECT_NE(driver_.last_attempt(), first);
}

TEST_F(FingerprintTest, AnAnswerIsContinuedByItsVersionOnly) {
  const WorkerIndex prefill = driver_.AddPrefill("p");
  const WorkerIndex decode = driver_.AddDecode("d");
  const WorkerIndex spare = driver_.AddDecode("d2");
  AddOther("p-next", v1::WORKER_ROLE_PREFILL);
  AddOther("d-next", v1::WORKER_ROLE_DECODE);
  driver_.Credit(WorkerIndex(50), 0);
  const RequestId id = driver_.Ask();
  const auto log = driver_.TakeLog();
  ASSERT_FALSE(log.empty());
  const WorkerIndex first = log.back() == "reserve 1 #1" ? decode : spare;
  driver_.RunToDecode(id, prefill, first);
  driver_.Credit(WorkerIndex(50), 1 << 20);
  driver_.TakeLog();
  driver_.Down(first);
  const std::string other =
      std::to_string((first == decode ? spare : decode).value());
  EXPECT_THAT(driver_.TakeLog(),
              ::testing::Contains("reserve " + other + " #2"));
}

TEST_F(FingerprintTest, WithoutItsVersionTheAnswerEnds) {
  const WorkerIndex prefill = driver_.AddPrefill("p");
  const WorkerIndex decode = driver_.AddDecode("d");
  const RequestId id = driver_.Ask();
  driver_.RunToDecode(id, prefill, decode);
  AddOther("p-next", v1::WORKER_ROLE_PREFILL);
  AddOther("d-next", v1::WORKER_ROLE_DECODE);
  driver_.Down(decode);
  ASSERT_TRUE(driver_.answer(id).status.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*driver_.answer(id).status));
  EXPECT_THAT(std::string(driver_.answer(id).status->message()),
              HasSubstr("fingerprints differ"));
}

TEST_F(FingerprintTest, WithoutAnyWorkerNothingIsSaidOfFingerprints) {
  const WorkerIndex prefill = driver_.AddPrefill("p");
  const WorkerIndex decode = driver_.AddDecode("d");
  const RequestId id = driver_.Ask();
  driver_.RunToDecode(id, prefill, decode);
  driver_.Down(decode);
  ASSERT_TRUE(driver_.answer(id).status.has_value());
  EXPECT_TRUE(absl::IsUnavailable(*driver_.answer(id).status));
  EXPECT_THAT(std::string(driver_.answer(id).status->message()),
              ::testing::Not(HasSubstr("fingerprints")));
}

}  // namespace
}  // namespace baton::router
