#include "common/base/ready_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace baton {
namespace {

using testing::HasSubstr;

class ReadyFileTest : public testing::Test {
 protected:
  ReadyFileTest() : path_(testing::TempDir() + "/ready_file_test.json") {
    std::filesystem::remove(path_);
  }
  void WriteText(const std::string& text) { std::ofstream(path_) << text; }

  const std::string path_;
};

TEST_F(ReadyFileTest, RoundTrips) {
  const ReadyFields fields{{"address", "127.0.0.1:1"},
                           {"odd", "q\"b\\n\nt\tc\x01 \xc3\xa9"},
                           {"empty", ""}};
  ASSERT_TRUE(WriteReadyFile(path_, fields).ok());
  const auto read = ReadReadyFile(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, fields);
}

TEST_F(ReadyFileTest, WritesPlainJson) {
  ASSERT_TRUE(
      WriteReadyFile(path_, {{"address", "a:1"}, {"admin", "b:2"}}).ok());
  std::stringstream text;
  text << std::ifstream(path_).rdbuf();
  EXPECT_EQ(text.str(), "{\"address\": \"a:1\", \"admin\": \"b:2\"}\n");
}

TEST_F(ReadyFileTest, ReplacesAndLeavesNothingElse) {
  const auto directory = std::filesystem::path(path_).parent_path() / "ready";
  std::filesystem::create_directory(directory);
  const std::string path = directory / "file.json";
  ASSERT_TRUE(WriteReadyFile(path, {{"a", "1"}}).ok());
  ASSERT_TRUE(WriteReadyFile(path, {{"a", "2"}}).ok());
  EXPECT_EQ(ReadReadyFile(path)->at("a"), "2");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}),
            1);
  std::filesystem::remove_all(directory);
}

TEST_F(ReadyFileTest, MissingFileIsNotFound) {
  EXPECT_EQ(ReadReadyFile(path_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ReadyFileTest, UnwritablePathNamesItself) {
  const absl::Status status = WriteReadyFile("/nowhere/ready", {});
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("/nowhere/ready: cannot create: No such file"));
}

TEST_F(ReadyFileTest, MalformedContentIsDataLoss) {
  for (const char* text :
       {"", "{", "[]", "{\"a\"}", "{\"a\":1}", "{\"a\":\"b\",}", "{\"a\":\"b\"",
        "{\"a\":\"b\"} x", "{\"a\":\"\\q\"}", "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u0041\"}", "{\"a\":\"\\", "{a:\"b\"}"}) {
    WriteText(text);
    EXPECT_EQ(ReadReadyFile(path_).status().code(), absl::StatusCode::kDataLoss)
        << text;
  }
  WriteText(std::string(70'000, ' '));
  EXPECT_THAT(std::string(ReadReadyFile(path_).status().message()),
              HasSubstr("larger than 64 KiB"));
}

TEST(JsonQuoteTest, EscapesQuotesBackslashesAndControls) {
  EXPECT_EQ(JsonQuote("a\"b\\c\n\x1f"), "\"a\\\"b\\\\c\\u000a\\u001f\"");
}

}  // namespace
}  // namespace baton
