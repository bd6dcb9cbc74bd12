#include "router/chat_template/operations.h"

#include <gtest/gtest.h>

#include <limits>

#include "router/chat_template/text_writer.h"

namespace baton::router {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();

class OperationsTest : public ::testing::Test {
 protected:
  static Value Int(int64_t value) { return Value(value); }
  static Value Str(std::string_view text) { return Value::String(text); }

  std::string Show(const absl::StatusOr<Value>& value) {
    if (!value.ok()) return std::string(value.status().message());
    return ToText(*value, budget_)->text();
  }

  std::string Compute(std::string_view op, const Value& a, const Value& b) {
    return Show(Arithmetic(op, a, b, budget_));
  }

  Budget budget_{ChatTemplateLimits()};
};

TEST_F(OperationsTest, IntegersNeverOverflow) {
  EXPECT_EQ(Compute("+", Int(kLargest), Int(1)), "integer out of range");
  EXPECT_EQ(Compute("-", Int(kSmallest), Int(1)), "integer out of range");
  EXPECT_EQ(Compute("*", Int(kLargest), Int(2)), "integer out of range");
  EXPECT_EQ(Compute("//", Int(kSmallest), Int(-1)), "integer out of range");
  EXPECT_EQ(Compute("%", Int(kSmallest), Int(-1)), "0");
  EXPECT_EQ(Compute("**", Int(2), Int(63)), "integer out of range");
  EXPECT_EQ(Compute("**", Int(2), Int(62)), "4611686018427387904");
  EXPECT_EQ(Compute("**", Int(1), Int(kLargest)), "1");
  EXPECT_EQ(Compute("**", Int(-1), Int(kLargest)), "-1");
  EXPECT_EQ(Compute("**", Int(0), Int(-1)), "division by zero");
}

TEST_F(OperationsTest, DivisionRoundsDown) {
  EXPECT_EQ(Compute("//", Int(-7), Int(2)), "-4");
  EXPECT_EQ(Compute("%", Int(-7), Int(2)), "1");
  EXPECT_EQ(Compute("%", Int(7), Int(-2)), "-1");
  EXPECT_EQ(Compute("/", Int(7), Int(2)), "3.5");
  EXPECT_EQ(Compute("%", Value(-7.5), Value(2.0)), "0.5");
  for (const char* op : {"/", "//", "%"}) {
    EXPECT_EQ(Compute(op, Int(1), Int(0)), "division by zero");
    EXPECT_EQ(Compute(op, Value(1.0), Value(0.0)), "division by zero");
  }
}

TEST_F(OperationsTest, MixedTypesAreNamed) {
  EXPECT_EQ(Compute("+", Str("a"), Int(1)),
            "unsupported operand types for +: 'str' and 'int'");
  EXPECT_EQ(Compute("-", Value(ValueList()), Value()),
            "unsupported operand types for -: 'list' and 'NoneType'");
  EXPECT_EQ(Compute("+", Value::Undefined("x"), Str("a")), "'x' is undefined");
  EXPECT_EQ(Compute("+", Str("a"), Value::Undefined("y")), "'y' is undefined");
}

TEST_F(OperationsTest, SlicesAreClamped) {
  const Value none;
  const Value text =
      Str("a\u4f60"
          "c");
  EXPECT_EQ(Show(Slice(text, Int(-100), Int(100), none, budget_)),
            "a\u4f60"
            "c");
  EXPECT_EQ(Show(Slice(text, Int(1), Int(2), none, budget_)), "\u4f60");
  EXPECT_EQ(Show(Slice(text, none, none, Int(-1), budget_)),
            "c\u4f60"
            "a");
  EXPECT_EQ(
      Show(Slice(text, Int(kSmallest), Int(kLargest), Int(kLargest), budget_)),
      "a");
  EXPECT_EQ(Show(Slice(text, none, none, Int(kSmallest), budget_)), "c");
  EXPECT_EQ(Show(Slice(text, none, none, Int(0), budget_)),
            "slice step cannot be zero");
  EXPECT_EQ(Show(Slice(text, Str("x"), none, none, budget_)),
            "slice indices must be integers (got str)");
  EXPECT_EQ(Show(Slice(Str(""), Int(1), none, Int(-1), budget_)), "");
}

TEST_F(OperationsTest, SubscriptsOutsideAreUndefined) {
  const Value list(ValueList{Int(1), Int(2)});
  EXPECT_EQ(Show(Subscript(list, Int(-2), budget_)), "1");
  for (const int64_t index : {int64_t{2}, int64_t{-3}, kLargest, kSmallest}) {
    EXPECT_TRUE(Subscript(list, Int(index), budget_)->is_undefined());
    EXPECT_TRUE(Subscript(Str("ab"), Int(index), budget_)->is_undefined());
  }
  EXPECT_FALSE(Subscript(Value::Undefined("u"), Int(0), budget_).ok());
}

TEST_F(OperationsTest, EqualityOfNestedValues) {
  const Value a(ValueEntries{{Str("k"), Value(ValueList{Int(1)})}});
  const Value b(ValueEntries{{Str("k"), Value(ValueList{Value(1.0)})}});
  const Value c(ValueEntries{{Str("k"), Value(ValueList{Int(2)})}});
  EXPECT_TRUE(*Equal(a, b, budget_));
  EXPECT_FALSE(*Equal(a, c, budget_));
  EXPECT_FALSE(*Equal(a, Value(), budget_));
  EXPECT_TRUE(*Equal(Value(true), Int(1), budget_));
  EXPECT_FALSE(*Equal(Str("1"), Int(1), budget_));
}

TEST_F(OperationsTest, WorkIsChargedBeforeMemoryIsTaken) {
  const auto code = [&](const absl::StatusOr<Value>& value) {
    return value.status().code();
  };
  EXPECT_EQ(code(Arithmetic("*", Str("ab"), Int(kLargest), budget_)),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      code(Arithmetic("*", Value(ValueList{Int(1)}), Int(kLargest), budget_)),
      absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Compute("*", Str(""), Int(kLargest)), "");
  EXPECT_EQ(Compute("*", Str("ab"), Int(-5)), "");
}

// [x, x] nested 40 deep shares its parts; comparing would take 2^40 steps.
TEST_F(OperationsTest, ComparingSharedStructuresIsBounded) {
  Value a = Int(1);
  Value b = Int(1);
  for (int i = 0; i < 40; ++i) {
    a = Value(ValueList{a, a});
    b = Value(ValueList{b, b});
  }
  EXPECT_EQ(Equal(a, b, budget_).status().code(),
            absl::StatusCode::kResourceExhausted);
  Budget fresh{ChatTemplateLimits()};
  EXPECT_EQ(ToText(a, fresh).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace baton::router
