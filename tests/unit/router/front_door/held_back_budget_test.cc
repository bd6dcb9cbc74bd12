#include "router/front_door/held_back_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/rpc/status.h"
#include "tests/unit/router/front_door/toy_cluster.h"

namespace baton::router {
namespace {

using ::testing::HasSubstr;

TEST(HeldBackBudget, IsGivenBackWithItsLastCopy) {
  double told = 0;
  HeldBackBudget budget(100, [&](double bytes) { told += bytes; });
  absl::StatusOr<std::shared_ptr<void>> a = budget.Reserve(60);
  ASSERT_TRUE(a.ok());
  const absl::Status full = budget.Reserve(41).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(),
            "best_of: too much is held back for others (60 of 100 bytes, "
            "needed 41)");
  EXPECT_TRUE(RetryDelay(full).has_value());
  EXPECT_TRUE(budget.Reserve(40).ok());
  std::shared_ptr<void> copy = *a;
  *a = nullptr;
  EXPECT_EQ(budget.used(), 60u);
  EXPECT_EQ(told, 60);
  copy.reset();
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(told, 0);
  const absl::Status never = budget.Reserve(101).status();
  EXPECT_EQ(never.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(never.message(), HasSubstr("best_of: its answers take up to 101 "
                                         "bytes while they are held back "
                                         "(allowed 100;"));
}

TEST(HeldBackBudget, CountsTheTextOfTheLongestToken) {
  EXPECT_EQ(LongestTokenText(MakeToyPrompts()->tokenizer()),
            std::string_view("<|im_start|>").size());
}

TEST(HeldBackBudget, OnlyRequestsThatHoldBackNeedIt) {
  ToyCluster cluster({.max_held_back_bytes = 100});
  v1::GenerateRequest request;
  request.set_text("hello");
  request.set_n(2);
  v1::GenerateEvent event;
  {
    grpc::ClientContext context;
    const auto reader = cluster.stub().Generate(&context, request);
    while (reader->Read(&event)) continue;
    EXPECT_TRUE(reader->Finish().ok());
  }
  request.set_best_of(3);
  grpc::ClientContext context;
  const auto reader = cluster.stub().Generate(&context, request);
  EXPECT_FALSE(reader->Read(&event));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("best_of: its answers take"));
}

}  // namespace
}  // namespace baton::router
