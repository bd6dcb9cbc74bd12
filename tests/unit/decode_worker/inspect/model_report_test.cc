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

ModelReport Report(const GgufWriter& writer) {
  const std::string content = writer.Serialize();
  const auto file = GgufFile::Parse(
      {reinterpret_cast<const std::byte*>(content.data()), content.size()},
      "memory");
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? ModelReport::Of(**file) : ModelReport();
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
