// Every layer's residual stream, and the first layer's projections, of SmolLM2
// against an independent fp32 reference: says which part is wrong when the
// logits are.
#include <cmath>
#include <cstdio>
#include <vector>

#include "tests/golden/smollm2_fixture.h"
#include "tests/support/tap_backend.h"

namespace baton {
namespace {

using nlohmann::json;

// 8-bit activations and an F16 cache, thirty layers deep.
constexpr double kRelativeNorm = 0.02;
constexpr double kRelativeValue = 0.10;  // of the vector's RMS value

double L2(absl::Span<const float> row) {
  double sum = 0;
  for (const float value : row) sum += double{value} * value;
  return std::sqrt(sum);
}

class LayersGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    golden_ = GoldenJson("smollm2/layers.json");
    auto backend = std::make_unique<TapBackend>(FastBackend());
    tap_ = backend.get();
    auto loaded = ModelUnderTest::Load(RealModelPath(), std::move(backend), {});
    ASSERT_TRUE(loaded.ok()) << loaded.status() << "\n" << kRealModelHint;
    loaded_ = *std::move(loaded);
    const auto tokens = golden_["ids"].get<std::vector<TokenId>>();
    ForEachLogits(*loaded_.model, tokens, static_cast<int>(tokens.size()),
                  static_cast<int>(tokens.size()) - 1,
                  [this](int, absl::Span<const float> logits) {
                    logits_.assign(logits.begin(), logits.end());
                  });
  }

  void ExpectRow(const json& expected, absl::Span<const float> row) {
    const double norm = expected["l2"].get<double>();
    const double rms = norm / std::sqrt(row.size());
    EXPECT_NEAR(L2(row) / norm, 1, kRelativeNorm);
    ExpectValues(expected["first8"], row, rms);
  }

  void ExpectValues(const json& expected, absl::Span<const float> row,
                    double rms) {
    for (size_t i = 0; i < expected.size(); ++i) {
      const double difference = row[i] - expected[i].get<double>();
      largest_ = std::max(largest_, std::fabs(difference) / rms);
      EXPECT_NEAR(difference / rms, 0, kRelativeValue) << "value " << i;
    }
  }

  json golden_;
  ModelUnderTest loaded_;
  TapBackend* tap_ = nullptr;
  std::vector<float> logits_;
  double largest_ = 0;
};

TEST_F(LayersGoldenTest, ResidualStreamFollowsTheReference) {
  // Norms in order: attention and feed-forward part of every layer, then the
  // final one. Layer i's output enters norm 2 (i + 1).
  const int layers = loaded_.model->config().layers;
  ASSERT_EQ(tap_->norms().size(), 2u * layers + 1);
  const size_t last = golden_["position"].get<size_t>();
  ExpectRow(golden_["embed"], tap_->norms()[0].InputRow(last));
  for (int layer = 0; layer < layers; ++layer) {
    SCOPED_TRACE(layer);
    ExpectRow(golden_["layers"][layer],
              tap_->norms()[2 * (layer + 1)].InputRow(last));
  }
  ExpectRow(golden_["final_norm"], tap_->norms().back().OutputRow(last));
  std::printf("residual values differ by %.3f RMS at most\n", largest_);
}

TEST_F(LayersGoldenTest, FirstLayersProjectionsAreTheReferences) {
  const json& qkv = golden_["qkv"]["0"];
  const int head_dim = loaded_.model->config().head_dim;
  for (const char* position : {"pos0", "pos16"}) {
    SCOPED_TRACE(position);
    const json& expected = qkv[position];
    const size_t row = std::string(position) == "pos0" ? 0 : 16;
    const auto compare = [&](const char* name, absl::Span<const float> head) {
      if (!expected.contains(name)) return;
      SCOPED_TRACE(name);
      ExpectValues(expected[name], head,
                   L2(head.first(head_dim)) / std::sqrt(head_dim));
    };
    const absl::Span<const float> query = tap_->QueryRow(row);
    const absl::Span<const float> key = tap_->KeyRow(row);
    const absl::Span<const float> value = tap_->ValueRow(row);
    compare("q_head0", query);
    compare("q_last_head", query.last(head_dim));
    compare("k_head0", key);
    compare("k_last_head", key.last(head_dim));
    compare("v_head0", value);
    if (!expected.contains("q_l2")) continue;
    EXPECT_NEAR(L2(query) / expected["q_l2"].get<double>(), 1, kRelativeNorm);
    EXPECT_NEAR(L2(key) / expected["k_l2"].get<double>(), 1, kRelativeNorm);
    EXPECT_NEAR(L2(value) / expected["v_l2"].get<double>(), 1, kRelativeNorm);
  }
  std::printf("projections differ by %.3f RMS at most\n", largest_);
}

}  // namespace
}  // namespace baton
