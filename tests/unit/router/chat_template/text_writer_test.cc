#include "router/chat_template/text_writer.h"

#include <gtest/gtest.h>

#include <limits>

namespace baton::router {
namespace {

std::string Json(const Value& value, std::optional<int64_t> indent = {}) {
  Budget budget{ChatTemplateLimits()};
  const auto json = ToJson(value, indent, false, budget);
  return json.ok() ? json->text() : std::string(json.status().message());
}

TEST(TextWriterTest, FloatsAsPython) {
  EXPECT_EQ(PythonFloat(0), "0.0");
  EXPECT_EQ(PythonFloat(-0.0), "-0.0");
  EXPECT_EQ(PythonFloat(0.1), "0.1");
  EXPECT_EQ(PythonFloat(1e15), "1000000000000000.0");
  EXPECT_EQ(PythonFloat(1e16), "1e+16");
  EXPECT_EQ(PythonFloat(0.0001), "0.0001");
  EXPECT_EQ(PythonFloat(0.00001), "1e-05");
  EXPECT_EQ(PythonFloat(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(PythonFloat(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(TextWriterTest, JsonEscapes) {
  EXPECT_EQ(Json(Value::String("\"\\\n\r\t\f\b\x01\x7f \u4f60 </>")),
            "\"\\\"\\\\\\n\\r\\t\\f\\b\\u0001\x7f \u4f60 </>\"");
}

TEST(TextWriterTest, JsonOfContainers) {
  const Value list(ValueList{Value(int64_t{1}), Value(), Value(true)});
  EXPECT_EQ(Json(list), "[1, null, true]");
  EXPECT_EQ(Json(list, 1), "[\n 1,\n null,\n true\n]");
  EXPECT_EQ(Json(Value(ValueEntries{{Value(int64_t{1}), list}})),
            "{\"1\": [1, null, true]}");
  EXPECT_EQ(Json(Value::Undefined("x")), "Undefined is not JSON serializable");
  EXPECT_EQ(Json(Value(ValueEntries{{list, list}})),
            "JSON keys must be strings");
}

TEST(TextWriterTest, EscapesKeepTheirMarks) {
  MarkedText text("a\n");
  text.Append(MarkedText("b\n", true));
  Budget budget{ChatTemplateLimits()};
  const auto json = ToJson(Value(text), std::nullopt, false, budget);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->text(), "\"a\\nb\\n\"");
  ASSERT_EQ(json->Pieces().size(), 3u);
  EXPECT_EQ(json->Pieces()[1].text, "b\\n");
  EXPECT_TRUE(json->Pieces()[1].from_user);
}

TEST(TextWriterTest, HugeIndentIsCut) {
  EXPECT_EQ(
      Json(Value(ValueList{Value()}), std::numeric_limits<int64_t>::max()),
      "[\n" + std::string(64, ' ') + "null\n]");
}

}  // namespace
}  // namespace baton::router
