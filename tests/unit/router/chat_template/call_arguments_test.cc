#include "router/chat_template/call_arguments.h"

#include <gtest/gtest.h>

namespace baton::router {
namespace {

Value Int(int64_t value) { return Value(value); }

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

TEST(CallArgumentsTest, BindsByPlaceAndName) {
  const auto bound = BoundArguments::Bind(
      {{Int(1)}, {{"c", Value::String("x")}}}, {"a", "b", "c"});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->ValueOr(0, Value()).integer(), 1);
  EXPECT_FALSE(bound->Has(1));
  EXPECT_EQ(bound->Text(2)->text(), "x");
  EXPECT_EQ(*bound->IntegerOr(1, 7), 7);
  EXPECT_EQ(bound->TextOr(1, "y")->text(), "y");
  EXPECT_TRUE(bound->FlagOr(0, false));
  EXPECT_TRUE(bound->FlagOr(1, true));
}

TEST(CallArgumentsTest, ErrorsNameTheArgument) {
  EXPECT_EQ(
      Message(BoundArguments::Bind({{Int(1), Int(2)}, {}}, {"a"}).status()),
      "too many arguments (got 2, allowed 1)");
  EXPECT_EQ(
      Message(BoundArguments::Bind({{}, {{"z", Int(1)}}}, {"a"}).status()),
      "unexpected argument 'z'");
  EXPECT_EQ(
      Message(
          BoundArguments::Bind({{Int(1)}, {{"a", Int(1)}}}, {"a"}).status()),
      "unexpected argument 'a'");
  const auto bound = BoundArguments::Bind({{Int(1)}, {}}, {"a", "b"});
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(Message(bound->Text(0).status()),
            "argument 'a' must be a string (got int)");
  EXPECT_EQ(Message(bound->Required(1).status()), "argument 'b' is missing");
  const auto text = BoundArguments::Bind({{Value::String("x")}, {}}, {"a"});
  EXPECT_EQ(Message(text->IntegerOr(0, 0).status()),
            "argument 'a' must be an integer (got str)");
}

}  // namespace
}  // namespace baton::router
