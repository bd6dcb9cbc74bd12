// Teacher-forced next tokens of SmolLM2 against an independent fp32 reference.
#include <cmath>
#include <cstdio>
#include <vector>

#include "tests/golden/smollm2_fixture.h"

namespace baton {
namespace {

constexpr int kChunk = 128;
constexpr double kDecisiveMargin = 0.8;  // logit
// Bounds on |logit - reference|: 8-bit activations and an F16 cache move the
// logits; a wrong formula moves them by more (rope base: 0.4, rope style: 2.5).
constexpr double kMeanDifference = 0.3;

struct Agreement {
  int decisive = 0;
  int decisive_wrong = 0;
  int all = 0;
  int equal = 0;

  void Count(TokenId got, TokenId expected, double margin) {
    ++all;
    equal += got == expected;
    if (margin <= kDecisiveMargin) return;
    ++decisive;
    decisive_wrong += got != expected;
  }
};

class LogitsGoldenTest : public SmolLm2Test {};

TEST_F(LogitsGoldenTest, ForcedGreedyTokensAgreeWhereTheMarginIsClear) {
  Agreement greedy;
  for (const nlohmann::json& entry : GoldenJson("smollm2/logits.json")) {
    SCOPED_TRACE(entry["id"].get<std::string>());
    auto tokens = entry["ids"].get<std::vector<TokenId>>();
    const auto expected = entry["greedy"]["ids"].get<std::vector<TokenId>>();
    const auto margins = entry["greedy"]["margins"].get<std::vector<double>>();
    const int prompt = static_cast<int>(tokens.size());
    tokens.insert(tokens.end(), expected.begin(), expected.end() - 1);
    ForEachLogits(model(), tokens, kChunk, prompt - 1,
                  [&](int position, absl::Span<const float> logits) {
                    const int k = position - (prompt - 1);
                    const TokenId got = ArgMax(logits);
                    greedy.Count(got, expected[k], margins[k]);
                    if (margins[k] > kDecisiveMargin) {
                      EXPECT_EQ(got, expected[k])
                          << "token " << k << ", margin " << margins[k];
                    }
                  });
  }
  std::printf("greedy: %d of %d equal; margin > %.1f: %d of %d equal\n",
              greedy.equal, greedy.all, kDecisiveMargin,
              greedy.decisive - greedy.decisive_wrong, greedy.decisive);
  EXPECT_GE(greedy.decisive, 150);
  EXPECT_GE(greedy.equal, greedy.all * 95 / 100);
}

TEST_F(LogitsGoldenTest, EveryPromptPositionAgrees) {
  Agreement top;
  double sum = 0;
  double largest = 0;
  int values = 0;
  for (const nlohmann::json& entry : GoldenJson("smollm2/logits.json")) {
    SCOPED_TRACE(entry["id"].get<std::string>());
    const auto tokens = entry["ids"].get<std::vector<TokenId>>();
    const int last = static_cast<int>(tokens.size()) - 1;
    const bool all = entry.contains("positions");
    ForEachLogits(
        model(), tokens, kChunk, all ? 0 : last,
        [&](int position, absl::Span<const float> logits) {
          const nlohmann::json& reference =
              all ? entry["positions"][position] : entry["last"];
          const auto ids = reference["top_ids"].get<std::vector<TokenId>>();
          const auto expected =
              reference["top_logits"].get<std::vector<double>>();
          const double margin = expected[0] - expected[1];
          const TokenId got = ArgMax(logits);
          top.Count(got, ids[0], margin);
          if (margin > kDecisiveMargin) {
            EXPECT_EQ(got, ids[0])
                << "position " << position << ", margin " << margin;
          }
          for (size_t i = 0; i < ids.size(); ++i) {
            const double difference = std::fabs(logits[ids[i]] - expected[i]);
            sum += difference;
            largest = std::max(largest, difference);
            ++values;
          }
        });
  }
  std::printf(
      "positions: top-1 %d of %d equal; margin > %.1f: %d of %d; "
      "top-32 logits differ by %.3f on average, %.3f at most\n",
      top.equal, top.all, kDecisiveMargin, top.decisive - top.decisive_wrong,
      top.decisive, sum / values, largest);
  EXPECT_LT(sum / values, kMeanDifference);
}

}  // namespace
}  // namespace baton
