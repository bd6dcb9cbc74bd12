#include "common/model/tensor_plan.h"

#include <memory>
#include <string>

#include "common/weights/tensor_type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/block_quantizer.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

using testing::HasSubstr;
using testing::Not;

absl::Status CheckFormat(const GgufWriter& writer, WeightFormat format) {
  const std::string content = writer.Serialize();
  const auto file = GgufFile::Parse(
      {reinterpret_cast<const std::byte*>(content.data()), content.size()},
      "memory");
  return file.ok() ? CheckWeightFormat(**file, format) : file.status();
}

absl::Status Check(const GgufWriter& writer) {
  const std::string content = writer.Serialize();
  const auto file = GgufFile::Parse(
      {reinterpret_cast<const std::byte*>(content.data()), content.size()},
      "memory");
  if (!file.ok()) return file.status();
  const auto config = ModelConfig::FromGguf(**file);
  if (!config.ok()) return config.status();
  return CheckTensors(**file, *config);
}

void Replace(GgufWriter* writer, const std::string& name,
             absl::Span<const uint64_t> shape) {
  size_t count = 1;
  for (const uint64_t extent : shape) count *= extent;
  writer->RemoveTensor(name);
  writer->AddTensor(name, shape, kGgmlF32,
                    EncodeTensor(kGgmlF32, std::vector<float>(count)));
}

TEST(TensorPlanTest, TinyModelsAreAsPlanned) {
  EXPECT_TRUE(Check(TinyModel({})).ok());
  EXPECT_TRUE(Check(TinyModel({.untied = true})).ok());
  EXPECT_TRUE(Check(TinyModel({.layers = 5})).ok());
}

TEST(TensorPlanTest, Int8ConvertsFloatMatricesOfOutputAndFeedForward) {
  using kernels::TensorType;
  const auto kept = [](const std::string& name, uint32_t type,
                       std::vector<uint64_t> shape) {
    GgufTensor tensor;
    tensor.name = name;
    tensor.type = type;
    tensor.shape = std::move(shape);
    EXPECT_EQ(KeptType(tensor, WeightFormat::kFile), *TensorTypeOf(type));
    return KeptType(tensor, WeightFormat::kInt8);
  };
  constexpr uint32_t kF16 = 1, kBF16 = 30;
  EXPECT_EQ(kept("token_embd.weight", kGgmlF32, {64, 272}), TensorType::kF32);
  EXPECT_EQ(kept("output.weight", kF16, {64, 272}), TensorType::kI8);
  EXPECT_EQ(kept("blk.3.ffn_up.weight", kBF16, {64, 128}), TensorType::kI8);
  EXPECT_EQ(kept("blk.3.ffn_up.weight", kGgmlQ8_0, {64, 128}),
            TensorType::kQ8_0);
  for (const std::string part : {"q", "k", "v", "output"}) {
    EXPECT_EQ(kept("blk.3.attn_" + part + ".weight", kF16, {64, 64}),
              TensorType::kF16);
  }
  EXPECT_EQ(kept("blk.3.ffn_norm.weight", kGgmlF32, {64}), TensorType::kF32);
}

TEST(TensorPlanTest, Int8NeedsAMatrixToConvert) {
  using Weights = TinyModelOptions::Weights;
  EXPECT_TRUE(CheckFormat(TinyModel({}), WeightFormat::kInt8).ok());
  const GgufWriter quantised = TinyModel({.weights = Weights::kQ4_1});
  EXPECT_TRUE(CheckFormat(quantised, WeightFormat::kFile).ok());
  EXPECT_EQ(CheckFormat(quantised, WeightFormat::kInt8),
            absl::InvalidArgumentError(
                "memory: weights (got int8, allowed file): no output or "
                "feed-forward matrix of type F32, F16 or BF16"));
}

TEST(TensorPlanTest, MissingTensorIsNamed) {
  GgufWriter writer = TinyModel({});
  writer.RemoveTensor("blk.1.ffn_up.weight");
  const absl::Status status = Check(writer);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "memory: tensor blk.1.ffn_up.weight: missing");
}

TEST(TensorPlanTest, WrongShapesGiveBothAndAreAllTold) {
  GgufWriter writer = TinyModel({});
  Replace(&writer, "blk.0.attn_k.weight", {64, 64});
  writer.RemoveTensor("output_norm.weight");
  const absl::Status status = Check(writer);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "memory: tensor blk.0.attn_k.weight: shape (got [64, 64], allowed "
            "[64, 32]); memory: tensor output_norm.weight: missing");
}

TEST(TensorPlanTest, EmbeddingRowsOtherThanTheVocabularyGiveBothNumbers) {
  GgufWriter writer = TinyModel({});
  Replace(&writer, "token_embd.weight", {64, 280});
  EXPECT_THAT(std::string(Check(writer).message()),
              HasSubstr("token_embd.weight: shape (got [64, 280], allowed "
                        "[64, 272])"));
}

TEST(TensorPlanTest, UnknownTensorsAreRefusedNotIgnored) {
  GgufWriter writer = TinyModel({});
  Replace(&writer, "blk.0.attn_q.bias", {64});
  const absl::Status status = Check(writer);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "memory: tensor blk.0.attn_q.bias: not part of a llama model");
}

TEST(TensorPlanTest, RopeFactorsAreOptional) {
  GgufWriter writer = TinyModel({});
  Replace(&writer, "rope_freqs.weight", {8});
  EXPECT_TRUE(Check(writer).ok());
  Replace(&writer, "rope_freqs.weight", {16});
  EXPECT_THAT(std::string(Check(writer).message()),
              HasSubstr("(got [16], allowed [8])"));
}

TEST(TensorPlanTest, ALongListIsCut) {
  GgufWriter writer = TinyModel({.layers = 9});
  for (int layer = 0; layer < 9; ++layer) {
    writer.RemoveTensor(LayerTensorName(layer, "ffn_norm"));
  }
  const std::string message(Check(writer).message());
  EXPECT_THAT(message, HasSubstr("blk.7.ffn_norm.weight: missing; and 1 more"));
  EXPECT_THAT(message, Not(HasSubstr("blk.8.")));
}

}  // namespace
}  // namespace baton
