#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "common/model/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

using testing::HasSubstr;

absl::StatusOr<ModelConfig> Read(const GgufWriter& writer) {
  const std::string content = writer.Serialize();
  const auto file = GgufFile::Parse(
      {reinterpret_cast<const std::byte*>(content.data()), content.size()},
      "memory");
  if (!file.ok()) return file.status();
  return ModelConfig::FromGguf(**file);
}

TEST(ModelConfigTest, ReadsTheTinyModel) {
  const auto config = Read(TinyModel({}));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->name, "tiny-llama");
  EXPECT_EQ(config->architecture, "llama");
  EXPECT_EQ(config->layers, 2);
  EXPECT_EQ(config->width, 64);
  EXPECT_EQ(config->heads, 4);
  EXPECT_EQ(config->kv_heads, 2);
  EXPECT_EQ(config->head_dim, 16);
  EXPECT_EQ(config->ffn_width, 128);
  EXPECT_EQ(config->vocabulary, 272);
  EXPECT_EQ(config->context, 256);
  EXPECT_EQ(config->rotary_dims, 16);
  EXPECT_EQ(config->rms_epsilon, 1e-5f);
  EXPECT_EQ(config->rope_base, 10000.0);
}

TEST(ModelConfigTest, KvLayoutFollows) {
  const auto config = Read(TinyModel({}));
  ASSERT_TRUE(config.ok());
  const kernels::KvLayout layout = config->kv_layout(kernels::KvType::kF16);
  // 2 (K and V) x layers x kv_heads x head_dim x 2 bytes, for 16 tokens.
  EXPECT_EQ(layout.block_bytes(), 16u * 2 * 2 * 2 * 16 * 2);
  EXPECT_EQ(config->kv_layout(kernels::KvType::kF32).block_bytes(),
            2 * layout.block_bytes());
}

TEST(ModelConfigTest, OptionalFieldsHaveLlamaDefaults) {
  GgufWriter writer = TinyModel({});
  for (const char* key :
       {"llama.attention.head_count_kv", "llama.rope.freq_base",
        "llama.rope.dimension_count", "llama.vocab_size", "general.name"}) {
    writer.RemoveKey(key);
  }
  const auto config = Read(writer);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->kv_heads, 4);
  EXPECT_EQ(config->rope_base, 10000.0);
  EXPECT_EQ(config->rotary_dims, 16);
  EXPECT_EQ(config->vocabulary, 272);
  EXPECT_EQ(config->name, "");
}

TEST(ModelConfigTest, KeyLengthSetsTheHeadDimension) {
  GgufWriter writer = TinyModel({});
  writer.AddUint32("llama.attention.key_length", 32);
  writer.AddUint32("llama.attention.value_length", 32);
  const auto config = Read(writer);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->head_dim, 32);
}

struct BadConfig {
  const char* name;
  const char* key;
  std::function<void(GgufWriter*, const char*)> change;
  const char* message;
};

auto Integer(uint32_t value) {
  return [value](GgufWriter* writer, const char* key) {
    writer->AddUint32(key, value);
  };
}

auto Real(float value) {
  return [value](GgufWriter* writer, const char* key) {
    writer->AddFloat32(key, value);
  };
}

auto Real64(double value) {
  return [value](GgufWriter* writer, const char* key) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    writer->AddRaw(key, 12, std::string_view(bytes, sizeof(value)));
  };
}

auto Text(std::string value) {
  return [value](GgufWriter* writer, const char* key) {
    writer->AddString(key, value);
  };
}

void Missing(GgufWriter*, const char*) {}

class BadModelConfigTest : public testing::TestWithParam<BadConfig> {};

TEST_P(BadModelConfigTest, NamesFieldValueAndAllowed) {
  GgufWriter writer = TinyModel({});
  writer.RemoveKey(GetParam().key);
  GetParam().change(&writer, GetParam().key);
  const auto config = Read(writer);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument)
      << config.status();
  EXPECT_THAT(
      std::string(config.status().message()),
      HasSubstr(std::string(GetParam().key) + ": " + GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadModelConfigTest,
    testing::Values(
        BadConfig{"OtherArchitecture", "general.architecture", Text("gemma3"),
                  "not supported (got 'gemma3', allowed 'llama')"},
        BadConfig{"NoArchitecture", "general.architecture", Missing, "missing"},
        BadConfig{"NoLayers", "llama.block_count", Integer(0),
                  "not supported (got 0, allowed 1..1024)"},
        BadConfig{"AMillionLayers", "llama.block_count", Integer(1000000),
                  "not supported (got 1000000, allowed 1..1024)"},
        BadConfig{"LayersMissing", "llama.block_count", Missing, "missing"},
        BadConfig{"ContextZero", "llama.context_length", Integer(0),
                  "not supported (got 0, allowed 1..16777216)"},
        BadConfig{"WidthHuge", "llama.embedding_length", Integer(4000000000),
                  "not supported (got 4000000000, allowed 1..131072)"},
        BadConfig{"HeadsZero", "llama.attention.head_count", Integer(0),
                  "not supported (got 0, allowed 1..1024)"},
        BadConfig{"WidthNoMultipleOfHeads", "llama.embedding_length",
                  Integer(66),
                  "not supported (got 66, allowed multiples of head_count 4)"},
        BadConfig{"KvHeadsAboveHeads", "llama.attention.head_count_kv",
                  Integer(5), "not supported (got 5, allowed 1..4)"},
        BadConfig{"KvHeadsZero", "llama.attention.head_count_kv", Integer(0),
                  "not supported (got 0, allowed 1..4)"},
        BadConfig{"KvHeadsNoDivisor", "llama.attention.head_count_kv",
                  Integer(3),
                  "not supported (got 3, allowed divisors of head_count 4)"},
        BadConfig{"KeyLengthOdd", "llama.attention.key_length", Integer(15),
                  "not supported (got 15, allowed even, 2..512)"},
        BadConfig{"ValueLengthDiffers", "llama.attention.value_length",
                  Integer(32),
                  "not supported (got 32, allowed the key length 16)"},
        BadConfig{"RopeBaseZero", "llama.rope.freq_base", Real(0),
                  "not supported (got 0, allowed finite and above 0)"},
        BadConfig{"RopeBaseNan", "llama.rope.freq_base",
                  Real(std::numeric_limits<float>::quiet_NaN()),
                  "not supported (got nan, allowed finite and above 0)"},
        BadConfig{"RotaryDimsAboveHead", "llama.rope.dimension_count",
                  Integer(18), "not supported (got 18, allowed 2..16)"},
        BadConfig{"RotaryDimsOdd", "llama.rope.dimension_count", Integer(7),
                  "not supported (got 7, allowed even)"},
        BadConfig{"RopeScaled", "llama.rope.scaling.type", Text("yarn"),
                  "not supported (got 'yarn', allowed 'none')"},
        BadConfig{"EpsilonInfinite", "llama.attention.layer_norm_rms_epsilon",
                  Real(std::numeric_limits<float>::infinity()),
                  "not supported (got inf, allowed finite and above 0)"},
        BadConfig{"EpsilonVanishesInFp32",
                  "llama.attention.layer_norm_rms_epsilon", Real64(1e-60),
                  "not supported (got 1e-60, allowed above 0 in fp32)"},
        BadConfig{"EpsilonHuge", "llama.attention.layer_norm_rms_epsilon",
                  Real64(1e300), "not supported (got 1e+300, allowed up to 1)"},
        BadConfig{"EpsilonMissing", "llama.attention.layer_norm_rms_epsilon",
                  Missing, "missing"},
        BadConfig{"Experts", "llama.expert_count", Integer(8),
                  "not supported (got 8, allowed 0..0)"},
        BadConfig{"VocabularyDiffers", "llama.vocab_size", Integer(280),
                  "not supported (got 280, allowed 272, the tokens of "
                  "tokenizer.ggml.tokens)"},
        BadConfig{"WrongType", "llama.block_count", Text("two"), "expected"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace baton
