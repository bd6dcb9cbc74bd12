// The tiny model: its file is the one the references were made from, and its
// logits are the reference's.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/base/sha256.h"
#include "gtest/gtest.h"
#include "kernels/reference/reference_backend.h"
#include "nlohmann/json.hpp"
#include "tests/support/model_under_test.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

using Weights = TinyModelOptions::Weights;

struct TinyCase {
  const char* name;
  const char* reference;
  Weights weights;
  double largest;  // bounds on |logit - reference|; logits reach ±10
  double mean;
  double margin;  // greedy tokens are compared where it is larger
};

// In Q4_1 the reference keeps activations in fp32, Baton has 8 bits of them.
constexpr TinyCase kCases[] = {
    {"F32", "tiny/ref_llama_f32.json", Weights::kF32, 1e-4, 1e-5, 0.001},
    {"Q4_1", "tiny/ref_llama_q4_1.json", Weights::kQ4_1, 0.8, 0.12, 0.3},
};

std::string Hex(const Sha256Digest& digest) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(digest.data()), digest.size()));
}

class TinyGoldenTest : public testing::TestWithParam<TinyCase> {
 protected:
  void SetUp() override {
    std::ifstream file(std::string(BATON_GOLDEN_DATA "/") +
                       GetParam().reference);
    golden_ = nlohmann::json::parse(file);
    const auto path =
        WriteTinyModel(testing::TempDir(), {.weights = GetParam().weights});
    ASSERT_TRUE(path.ok()) << path.status();
    auto loaded = ModelUnderTest::Load(*path, kernels::MakeReferenceBackend(),
                                       {.kv_type = kernels::KvType::kF32});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    loaded_ = *std::move(loaded);
  }

  const Model& model() const { return *loaded_.model; }

  nlohmann::json golden_;
  ModelUnderTest loaded_;
};

TEST_P(TinyGoldenTest, FileIsTheReferencesFile) {
  const GgufWriter writer = TinyModel({.weights = GetParam().weights});
  EXPECT_EQ(Hex(Sha256Of(writer.TensorData())),
            golden_["tensor_data_sha256"].get<std::string>());
  EXPECT_EQ(Hex(Sha256Of(writer.Serialize())),
            golden_["file_sha256_gguf_0.19.0"].get<std::string>());
}

TEST_P(TinyGoldenTest, LogitsAreTheReferences) {
  double largest = 0;
  double sum = 0;
  int count = 0;
  const auto compare = [&](float got, double expected) {
    const double difference = std::fabs(got - expected);
    largest = std::max(largest, difference);
    sum += difference;
    ++count;
  };
  for (const nlohmann::json& prompt : golden_["prompts"]) {
    SCOPED_TRACE(prompt["text"].get<std::string>());
    const auto ids = prompt["ids"].get<std::vector<TokenId>>();
    const auto last = prompt["last_logits"].get<std::vector<float>>();
    ForEachLogits(
        model(), ids, static_cast<int>(ids.size()), 0,
        [&](int position, absl::Span<const float> logits) {
          const nlohmann::json& expected = prompt["positions"][position];
          for (size_t i = 0; i < expected["top_ids"].size(); ++i) {
            const TokenId id = expected["top_ids"][i].get<TokenId>();
            compare(logits[id], expected["top_logits"][i].get<double>());
          }
          EXPECT_NEAR(LogSumExp(logits), expected["lse"].get<double>(),
                      GetParam().largest);
          if (position + 1 < static_cast<int>(ids.size())) return;
          ASSERT_EQ(logits.size(), last.size());
          for (size_t i = 0; i < last.size(); ++i) compare(logits[i], last[i]);
        });
  }
  std::printf("%s: logits differ by %.3g on average, %.3g at most\n",
              GetParam().name, sum / count, largest);
  EXPECT_LE(largest, GetParam().largest);
  EXPECT_LE(sum / count, GetParam().mean);
}

TEST_P(TinyGoldenTest, GreedyTokensAreTheReferences) {
  int compared = 0;
  for (const nlohmann::json& prompt : golden_["prompts"]) {
    SCOPED_TRACE(prompt["text"].get<std::string>());
    auto tokens = prompt["ids"].get<std::vector<TokenId>>();
    const auto expected = prompt["greedy"].get<std::vector<TokenId>>();
    const auto margins = prompt["greedy_margins"].get<std::vector<double>>();
    const int first = static_cast<int>(tokens.size()) - 1;
    tokens.insert(tokens.end(), expected.begin(), expected.end() - 1);
    ForEachLogits(model(), tokens, 16, first,
                  [&](int position, absl::Span<const float> logits) {
                    const int k = position - first;
                    if (margins[k] <= GetParam().margin) return;
                    ++compared;
                    EXPECT_EQ(ArgMax(logits), expected[k])
                        << "token " << k << ", margin " << margins[k];
                  });
  }
  const int all = 16 * static_cast<int>(golden_["prompts"].size());
  std::printf("%s: %d of %d greedy tokens compared\n", GetParam().name,
              compared, all);
  EXPECT_GE(compared, GetParam().weights == Weights::kF32 ? all : all / 2);
}

INSTANTIATE_TEST_SUITE_P(Tiny, TinyGoldenTest, testing::ValuesIn(kCases),
                         [](const auto& test) {
                           return std::string(test.param.name);
                         });

}  // namespace
}  // namespace baton
