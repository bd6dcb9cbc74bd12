#include "common/model_file/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "common/base/sha256.h"
#include "tests/support/gguf_writer.h"

namespace baton {
namespace {

using ::testing::ElementsAre;

absl::Span<const std::byte> AsBytes(std::string_view bytes) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()),
                             bytes.size());
}

std::string FloatBytes(std::vector<float> values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

class GgufTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GgufWriter writer;
    writer.AddString("general.architecture", "llama");
    writer.AddUint32("count", 30);
    writer.AddRaw("small", 0, "\xc8");
    writer.AddRaw("negative", 5, "\xfb\xff\xff\xff");
    writer.AddUint64("huge", ~uint64_t{0});
    writer.AddFloat32("epsilon", 0.5f);
    writer.AddBool("yes", true);
    writer.AddStrings("names", {"a", "", "c\xff"});
    writer.AddInt32s("integers", {1, -2, 3});
    writer.AddFloat32s("floats", {1.5f, -2.5f});
    writer.AddTensor("norm", {3}, kGgmlF32, FloatBytes({1, 2, 3}));
    writer.AddTensor("matrix", {64, 2}, kGgmlQ8_0, std::string(2 * 68, 'q'));
    bytes_ = writer.Serialize();
    auto file = GgufFile::Parse(AsBytes(bytes_), "test.gguf");
    ASSERT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
  }

  std::string bytes_;
  std::unique_ptr<GgufFile> file_;
};

TEST_F(GgufTest, ReadsScalars) {
  EXPECT_EQ(*file_->String("general.architecture"), "llama");
  EXPECT_EQ(*file_->Unsigned("count"), 30u);
  EXPECT_EQ(*file_->Unsigned("small"), 200u);
  EXPECT_EQ(*file_->Unsigned("huge"), ~uint64_t{0});
  EXPECT_EQ(*file_->Float("epsilon"), 0.5);
  EXPECT_TRUE(*file_->Bool("yes"));
  EXPECT_TRUE(file_->Has("yes"));
  EXPECT_FALSE(file_->Has("no"));
}

TEST_F(GgufTest, ReadsArrays) {
  EXPECT_THAT(*file_->Strings("names"), ElementsAre("a", "", "c\xff"));
  EXPECT_THAT(*file_->Integers("integers"), ElementsAre(1, -2, 3));
  EXPECT_THAT(*file_->Floats("floats"), ElementsAre(1.5f, -2.5f));
}

TEST_F(GgufTest, KeepsFileOrder) {
  EXPECT_THAT(file_->keys(), ElementsAre("general.architecture", "count",
                                         "small", "negative", "huge", "epsilon",
                                         "yes", "names", "integers", "floats"));
  EXPECT_EQ(file_->tensors()[0].name, "norm");
  EXPECT_EQ(file_->tensors()[1].name, "matrix");
}

TEST_F(GgufTest, FindsTensors) {
  const GgufTensor* matrix = file_->FindTensor("matrix");
  ASSERT_NE(matrix, nullptr);
  EXPECT_EQ(matrix->type, 8u);
  EXPECT_THAT(matrix->shape, ElementsAre(64, 2));
  EXPECT_EQ(matrix->elements(), 128u);
  EXPECT_EQ(matrix->data.size(), 136u);
  EXPECT_EQ(matrix->data[0], std::byte{'q'});
  const GgufTensor* norm = file_->FindTensor("norm");
  ASSERT_NE(norm, nullptr);
  float values[3];
  ASSERT_EQ(norm->data.size(), sizeof(values));
  std::memcpy(values, norm->data.data(), sizeof(values));
  EXPECT_THAT(values, ElementsAre(1, 2, 3));
  EXPECT_EQ(file_->FindTensor("none"), nullptr);
}

TEST_F(GgufTest, DescribesValues) {
  EXPECT_EQ(file_->Describe("general.architecture"), "llama");
  EXPECT_EQ(file_->Describe("count"), "30");
  EXPECT_EQ(file_->Describe("negative"), "-5");
  EXPECT_EQ(file_->Describe("epsilon"), "0.5");
  EXPECT_EQ(file_->Describe("yes"), "true");
  EXPECT_EQ(file_->Describe("names"), "string[3]");
  EXPECT_EQ(file_->Describe("floats"), "f32[2]");
}

TEST_F(GgufTest, MissingKeyIsNotFound) {
  const absl::Status status = file_->Unsigned("no.such").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(std::string(status.message()), "test.gguf: no.such: missing");
}

TEST_F(GgufTest, WrongTypeNamesBoth) {
  const auto message = [](const auto& result) {
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  EXPECT_EQ(message(file_->Unsigned("negative")),
            "test.gguf@128: negative: negative (got -5, allowed at least 0)");
  EXPECT_EQ(message(file_->Unsigned("yes")),
            "test.gguf@194: yes: expected unsigned integer (got bool, allowed "
            "unsigned integer)");
  EXPECT_EQ(message(file_->Floats("integers")),
            "test.gguf@283: integers: expected f32 array (got i32[3], allowed "
            "f32 array)");
  EXPECT_EQ(message(file_->Strings("count")),
            "test.gguf@86: count: expected string array (got u32, allowed "
            "string array)");
  message(file_->Bool("count"));
  message(file_->Float("count"));
  message(file_->String("count"));
  message(file_->Integers("floats"));
  message(file_->Integers("names"));
}

TEST(GgufArrayTest, ScoresTypedU8AreRefused) {
  GgufWriter writer;
  writer.AddRaw("tokenizer.ggml.scores", 9,
                std::string("\0\0\0\0\3\0\0\0\0\0\0\0\1\2\3", 15));
  const std::string bytes = writer.Serialize();
  const auto file = GgufFile::Parse(AsBytes(bytes), "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(
      std::string((*file)->Floats("tokenizer.ggml.scores").status().message()),
      "f@69: tokenizer.ggml.scores: expected f32 array (got u8[3], allowed f32 "
      "array)");
}

TEST(GgufArrayTest, UnsignedElementsMustFit) {
  GgufWriter writer;
  writer.AddRaw("a", 9,
                std::string("\12\0\0\0\1\0\0\0\0\0\0\0"
                            "\0\0\0\0\0\0\0\x80",
                            20));
  const std::string bytes = writer.Serialize();
  const auto file = GgufFile::Parse(AsBytes(bytes), "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE((*file)->Integers("a").ok());
}

TEST(GgufDescribeTest, LongStringsAreCutAndEscaped) {
  GgufWriter writer;
  writer.AddString("t", std::string(100, 'x') + "\n");
  const std::string bytes = writer.Serialize();
  const auto file = GgufFile::Parse(AsBytes(bytes), "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->Describe("t"), std::string(60, 'x') + "... (101 bytes)");
}

TEST(GgufOpenTest, MapsFileAndHashesIt) {
  const std::string path = ::testing::TempDir() + "gguf_test.gguf";
  GgufWriter writer;
  writer.AddUint32("k", 1);
  const std::string bytes = writer.Serialize();
  std::ofstream(path, std::ios::binary) << bytes;
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path(), path);
  EXPECT_EQ((*file)->file_bytes(), bytes.size());
  EXPECT_EQ(*(*file)->Unsigned("k"), 1u);
  EXPECT_EQ((*file)->Sha256().size(), 32u);
  EXPECT_EQ((*file)->Sha256(), (*file)->Sha256());
  std::filesystem::remove(path);
}

TEST(GgufHashTest, GivenUpItBeginsAgain) {
  constexpr uint64_t kFloats = 9 << 18;  // three pieces
  GgufWriter writer;
  writer.AddTensor("t", {kFloats}, kGgmlF32, std::string(4 * kFloats, 'x'));
  const std::string bytes = writer.Serialize();
  const auto file = GgufFile::Parse(AsBytes(bytes), "f");
  ASSERT_TRUE(file.ok()) << file.status();
  int asked = 0;
  EXPECT_EQ((*file)->Sha256([&] { return ++asked == 2; }), "");
  EXPECT_EQ(asked, 2) << "the third piece is not read";
  baton::Sha256 whole;
  const Sha256Digest digest = whole.Update(bytes).Finish();
  EXPECT_EQ((*file)->Sha256(), std::string(digest.begin(), digest.end()));
  EXPECT_EQ((*file)->Sha256([] { return true; }), (*file)->Sha256());
}

TEST(GgufOpenTest, NoFilePathsAreRefused) {
  EXPECT_EQ(GgufFile::Open("/nonexistent/x.gguf").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(GgufFile::Open("/").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace baton
