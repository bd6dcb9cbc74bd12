#include "router/chat_template/budget.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

constexpr ChatTemplateLimits kLimits{
    .max_steps = 10, .max_depth = 2, .max_output_bytes = 8};

bool Exhausted(const absl::Status& status) {
  return status.code() == absl::StatusCode::kResourceExhausted;
}

TEST(BudgetTest, StepsAddUp) {
  Budget budget(kLimits);
  EXPECT_TRUE(budget.Steps(4).ok());
  EXPECT_TRUE(budget.Steps(6).ok());
  const absl::Status status = budget.Steps(1);
  EXPECT_TRUE(Exhausted(status));
  EXPECT_EQ(std::string(status.message()), "chat_template: more than 10 steps");
  EXPECT_TRUE(Exhausted(Budget(kLimits).Steps(~uint64_t{0})));
}

TEST(BudgetTest, BytesAddUpAcrossStrings) {
  Budget budget(kLimits);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(budget.StringOf(8).ok()) << i;
  EXPECT_TRUE(Exhausted(budget.Bytes(1)));
}

TEST(BudgetTest, NoStringOutgrowsTheOutput) {
  Budget budget(kLimits);
  EXPECT_TRUE(Exhausted(budget.StringOf(9)));
  MarkedText text;
  EXPECT_TRUE(budget.Append(&text, "12345").ok());
  EXPECT_TRUE(budget.Append(&text, MarkedText("678")).ok());
  EXPECT_TRUE(Exhausted(budget.Append(&text, "9")));
  EXPECT_TRUE(Exhausted(budget.Append(&text, MarkedText("9"))));
  EXPECT_EQ(text.text(), "12345678");
}

TEST(BudgetTest, NestingOfValuesAndRecursion) {
  Budget budget(kLimits);
  EXPECT_TRUE(budget.Nesting(2).ok());
  EXPECT_TRUE(Exhausted(budget.Nesting(3)));
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(budget.Enter().ok());
  EXPECT_TRUE(Exhausted(budget.Enter()));
  budget.Leave();
  EXPECT_TRUE(budget.Enter().ok());
}

}  // namespace
}  // namespace baton::router
