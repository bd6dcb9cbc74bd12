#include "router/front_door/held_back_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "common/rpc/status.h"
#include "router/request_flow/best_answers.h"
#include "tests/unit/router/front_door/toy_cluster.h"

namespace baton::router {
namespace {

using ::baton::testing::Eventually;
using ::testing::HasSubstr;

TEST(HeldBackBudget, IsGivenBackWithItsLastCopy) {
  double told = 0;
  HeldBackBudget budget(200, [&](double bytes) { told += bytes; });
  absl::StatusOr<std::shared_ptr<void>> a = budget.Reserve("a", 60);
  ASSERT_TRUE(a.ok());
  const absl::Status full = budget.Reserve("a", 41).status();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(full.message(),
            "best_of: too much is held back (60 bytes for this client, 0 of "
            "200 for others; needed 41 more, allowed to this client 100)");
  EXPECT_TRUE(RetryDelay(full).has_value());
  EXPECT_EQ(budget.CheckRoom("a", 41), full);
  EXPECT_TRUE(budget.CheckRoom("a", 40).ok());
  EXPECT_TRUE(budget.Reserve("a", 40).ok());
  std::shared_ptr<void> copy = *a;
  *a = nullptr;
  EXPECT_EQ(budget.used(), 60u);
  EXPECT_EQ(told, 60);
  copy.reset();
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(told, 0);
  EXPECT_TRUE(budget.Reserve("a", 100).ok());
  const absl::Status never = budget.Reserve("a", 101).status();
  EXPECT_EQ(never.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(never.message(), HasSubstr("best_of: its answers take up to 101 "
                                         "bytes while they are held back "
                                         "(allowed 100;"));
  EXPECT_TRUE(budget.CheckRoom("a", 101).ok()) << "told later, with the rest";
}

TEST(HeldBackBudget, LeavesSomethingToOthers) {
  HeldBackBudget budget(1600, [](double) {});
  std::vector<std::shared_ptr<void>> held;
  for (const auto& [client, most] :
       {std::pair("a", 800), {"b", 400}, {"c", 200}, {"d", 100}}) {
    for (int i = 0; i < 2; ++i) {
      auto half = budget.Reserve(client, most / 2);
      ASSERT_TRUE(half.ok()) << half.status();
      held.push_back(*std::move(half));
    }
    EXPECT_EQ(budget.Reserve(client, 1).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
  held.erase(held.begin(), held.begin() + 2);
  EXPECT_TRUE(budget.Reserve("d", 300).ok()) << "what one gave back";
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

TEST(HeldBackBudget, IsAskedBeforeThePromptIsRead) {
  v1::GenerateRequest request;
  request.set_text("hello");
  request.set_max_tokens(5);
  request.set_best_of(3);
  const uint64_t each = BestAnswers::MostBytes(
      3, 5, LongestTokenText(MakeToyPrompts()->tokenizer()), std::nullopt);
  ToyCluster cluster({.max_held_back_bytes = 3 * each});
  cluster.HoldDecode();
  grpc::ClientContext first;
  const auto running = cluster.stub().Generate(&first, request);
  ASSERT_TRUE(Eventually([&] { return cluster.held() == 1; }));

  request.set_text("");  // "prompt: no tokens", were it read
  grpc::ClientContext context;
  const auto reader = cluster.stub().Generate(&context, request);
  v1::GenerateEvent event;
  EXPECT_FALSE(reader->Read(&event));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(),
              HasSubstr("best_of: too much is held back"));
  first.TryCancel();
}

}  // namespace
}  // namespace baton::router
