#include "decode_worker/inspect/model_report.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

using kernels::KvType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A backend that keeps rows as they are.
size_t FileBytes(const kernels::MatrixShape& shape) {
  return shape.rows * kernels::RowBytes(shape.packed_type(), shape.cols);
}

ModelReport Report(const GgufWriter& writer) {
  const std::string content = writer.Serialize();
  const auto file = GgufFile::Parse(
      {reinterpret_cast<const std::byte*>(content.data()), content.size()},
      "memory");
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? ModelReport::Of(**file, FileBytes) : ModelReport();
}

GgufWriter Quantised() {
  return TinyModel({.weights = TinyModelOptions::Weights::kQ4_1});
}

TEST(ModelReportTest, CountsTensorsByType) {
  const ModelReport report = Report(Quantised());
  ASSERT_EQ(report.types.size(), 3u);
  EXPECT_EQ(report.types[0].type, "Q4_1");
  EXPECT_EQ(report.types[0].tensors, 14u);
  EXPECT_EQ(report.types[0].elements, 2u * 36 * 1024);
  EXPECT_EQ(report.types[0].bytes, 2u * 36 * 1024 / 32 * 20);
  EXPECT_EQ(report.types[1].type, "Q8_0");
  EXPECT_EQ(report.types[1].bytes, 272u * 64 / 32 * 34);
  EXPECT_EQ(report.types[2].type, "F32");
  EXPECT_EQ(report.types[2].tensors, 5u);
}

TEST(ModelReportTest, TellsWhatWeightsTakeInMemory) {
  const ModelReport quantised = Report(Quantised());
  ASSERT_EQ(quantised.weights.size(), 1u);  // nothing to make int8
  EXPECT_EQ(quantised.weights[0].format, WeightFormat::kFile);
  EXPECT_EQ(quantised.weights[0].int8_matrices, 0u);
  EXPECT_EQ(quantised.weights[0].bytes,
            2u * 36 * 1024 / 32 * 20 + 272u * 64 / 32 * 34 + 5 * 64 * 4);

  // Per layer 12,288 weights of attention, 24,576 of the feed-forward part.
  constexpr uint64_t kVectors = 5 * 64 * 4, kEmbedding = 272 * 64 * 4;
  constexpr uint64_t kOutput = 272 * (64 + 4);
  constexpr uint64_t kAttention = 2 * 12288 * 4;
  constexpr uint64_t kFeedForward = 2 * (2 * 128 * (64 + 4) + 64 * (128 + 4));
  for (const bool untied : {false, true}) {
    const ModelReport f32 = Report(TinyModel({.untied = untied}));
    ASSERT_EQ(f32.weights.size(), 2u);
    EXPECT_EQ(f32.weights[0].bytes, kVectors + (untied ? 2 : 1) * kEmbedding +
                                        kAttention + 2 * 24576 * 4);
    EXPECT_EQ(f32.weights[1].format, WeightFormat::kInt8);
    EXPECT_EQ(f32.weights[1].int8_matrices, 7u);  // the output's copy too
    EXPECT_EQ(f32.weights[1].bytes,
              kVectors + kEmbedding + kOutput + kAttention + kFeedForward);
  }
}

TEST(ModelReportTest, TellsNoMemoryOfARefusedFile) {
  GgufWriter writer = Quantised();
  writer.RemoveTensor("output_norm.weight");
  EXPECT_THAT(Report(writer).weights, IsEmpty());
}

TEST(ModelReportTest, KnowsTokenizerAndTemplate) {
  const ModelReport report = Report(Quantised());
  ASSERT_TRUE(report.tokenizer.has_value());
  EXPECT_EQ(report.tokenizer->kind, "gpt2");
  EXPECT_EQ(report.tokenizer->pre_tokenizer, "smollm");
  EXPECT_EQ(report.tokenizer->vocabulary, 272u);
  EXPECT_EQ(report.tokenizer->bos, 1u);
  EXPECT_EQ(report.tokenizer->eos, 2u);
  EXPECT_THAT(report.tokenizer->end_of_generation, testing::Contains(2u));
  EXPECT_TRUE(report.chat_template);

  GgufWriter bare = Quantised();
  bare.RemoveKey("tokenizer.chat_template");
  EXPECT_FALSE(Report(bare).chat_template);
}

TEST(ModelReportTest, KvBytesFollowTheFormula) {
  const ModelReport report = Report(Quantised());
  EXPECT_EQ(report.KvBytesPerToken(KvType::kF16), 2u * 2 * 2 * 16 * 2);
  EXPECT_EQ(report.KvBytesPerToken(KvType::kF32), 2u * 2 * 2 * 16 * 4);
  EXPECT_EQ(report.KvBytesPerToken(KvType::kF16) * 16,
            report.config->kv_layout(KvType::kF16).block_bytes());
  EXPECT_EQ(report.KvBytesPerToken(KvType::kI8), 2u * 2 * 2 * (16 + 4));
  EXPECT_EQ(report.KvTokens(KvType::kI8, 16 * 160), 16u);
  // Whole blocks of 16 tokens of 256 bytes.
  EXPECT_EQ(report.KvTokens(KvType::kF16, 4095), 0u);
  EXPECT_EQ(report.KvTokens(KvType::kF16, 4096), 16u);
  EXPECT_EQ(report.KvTokens(KvType::kF16, 3 * 4096 + 100), 48u);
}

TEST(ModelReportTest, NothingIsRefusedOfAGoodFile) {
  EXPECT_THAT(Report(Quantised()).refusals, IsEmpty());
}

TEST(ModelReportTest, EveryReasonForRefusalIsTold) {
  GgufWriter writer = Quantised();
  writer.RemoveKey("tokenizer.ggml.model");
  writer.AddString("tokenizer.ggml.model", "bert");
  writer.RemoveTensor("output_norm.weight");
  const ModelReport report = Report(writer);
  EXPECT_THAT(report.refusals,
              ElementsAre(HasSubstr("output_norm.weight: missing"),
                          HasSubstr("tokenizer.ggml.model")));
  EXPECT_FALSE(report.tokenizer.has_value());
}

TEST(ModelReportTest, OtherArchitecturesAreRefusedButShown) {
  GgufWriter writer = Quantised();
  writer.RemoveKey("general.architecture");
  writer.AddString("general.architecture", "gemma3");
  const ModelReport report = Report(writer);
  EXPECT_EQ(report.architecture, "gemma3");
  EXPECT_FALSE(report.config.has_value());
  EXPECT_THAT(report.refusals, ElementsAre(HasSubstr("general.architecture")));
  EXPECT_EQ(report.types.size(), 3u);
  EXPECT_EQ(report.KvBytesPerToken(KvType::kF16), 0u);
  EXPECT_EQ(report.KvTokens(KvType::kF16, 1 << 20), 0u);
  EXPECT_THAT(ToText(report, 1 << 20), HasSubstr("refused"));
}

TEST(ModelReportTest, TextIsReadable) {
  const std::string text = ToText(Report(Quantised()), 1 << 20);
  EXPECT_THAT(text, HasSubstr("architecture    llama\n"));
  EXPECT_THAT(text, HasSubstr("attention       4 heads, 2 KV heads of 16; RoPE "
                              "base 10000 over 16\n"));
  EXPECT_THAT(text, HasSubstr("KV cache f16    2 x 2 layers x 2 KV heads x 16 "
                              "x 2 B = 256 B per token; 1.0 MiB hold 4096 "
                              "tokens\n"));
  EXPECT_THAT(text, HasSubstr("KV cache i8     2 x 2 layers x 2 KV heads x (16 "
                              "x 1 B + 4 B) = 160 B per token; 1.0 MiB hold "
                              "6544 tokens\n"));
  EXPECT_THAT(text, HasSubstr("served          yes\n"));
}

TEST(ModelReportTest, TextHidesControlCharacters) {
  GgufWriter writer = Quantised();
  writer.RemoveKey("general.name");
  writer.AddString("general.name", "evil\x1b[2Jmodel");
  EXPECT_THAT(ToText(Report(writer), {}), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace baton
