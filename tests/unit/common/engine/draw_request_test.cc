#include "common/engine/draw_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace baton {
namespace {

using testing::ElementsAre;

constexpr size_t kTokens = 10;
constexpr uint64_t kDraws = 200'000;
// A chi-square of nine degrees of freedom exceeds it once in a thousand.
constexpr double kChiSquareLimit = 27.88;

using Distribution = std::array<double, kTokens>;
constexpr Distribution kTarget = {0.30, 0.20, 0.15, 0.10, 0.08,
                                  0.06, 0.05, 0.03, 0.02, 0.01};
constexpr Distribution kDraft = {0.18, 0.25, 0.05, 0.20, 0.02,
                                 0.10, 0.03, 0.07, 0.06, 0.04};

std::vector<float> Logits(const Distribution& p) {
  std::vector<float> logits;
  for (const double share : p) {
    logits.push_back(static_cast<float>(std::log(share)));
  }
  return logits;
}

// That draws of two distributions with the same Gumbel noise are equal: the sum
// over tokens i of 1 / sum_j max(p_j / p_i, q_j / q_i).
double CouplingExpectation(const Distribution& p, const Distribution& q) {
  double expected = 0;
  for (size_t i = 0; i < kTokens; ++i) {
    double sum = 0;
    for (size_t j = 0; j < kTokens; ++j) {
      sum += std::max(p[j] / p[i], q[j] / q[i]);
    }
    expected += 1 / sum;
  }
  return expected;
}

double ChiSquare(const std::array<uint64_t, kTokens>& counts,
                 const Distribution& p) {
  uint64_t all = 0;
  for (const uint64_t count : counts) all += count;
  double sum = 0;
  for (size_t i = 0; i < kTokens; ++i) {
    const double expected = p[i] * static_cast<double>(all);
    const double miss = static_cast<double>(counts[i]) - expected;
    sum += miss * miss / expected;
  }
  return sum;
}

DrawRequest RequestAt(uint64_t position) {
  DrawRequest draw;
  SamplingParams params;
  params.seed = 4242;
  draw.params = std::make_shared<const SamplingParams>(params);
  draw.choice = 1;
  draw.position = position;
  return draw;
}

absl::StatusOr<SampledToken> SampleFrom(const std::vector<float>& logits,
                                        const DrawRequest& draw) {
  return Sample(logits, *draw.params, draw.counts, draw.context(), 0);
}

// Draws positions 0 to kDraws - 1, guessed `drafts` at a time by a model of the
// distribution `q`.
struct Drawn {
  std::array<uint64_t, kTokens> counts{};
  std::vector<TokenId> tokens;
  uint64_t guesses = 0, right = 0;  // of those compared
};
Drawn DrawAll(size_t drafts, const Distribution& q) {
  const std::vector<float> target = Logits(kTarget), draft = Logits(q);
  Drawn drawn;
  while (drawn.tokens.size() < kDraws) {
    const DrawRequest first = RequestAt(drawn.tokens.size());
    std::vector<TokenId> guesses;
    DrawRequest ahead = first;
    for (size_t i = 0; i < drafts; ++i) {
      guesses.push_back(SampleFrom(draft, ahead)->token);
      ahead.Advance(guesses.back());
    }
    const auto run =
        DrawRun(first, guesses, [&](size_t, const DrawRequest& draw) {
          return SampleFrom(target, draw);
        });
    for (const SampledToken& token : *run) {
      drawn.tokens.push_back(token.token);
      ++drawn.counts[token.token];
    }
    drawn.right += run->size() - 1;
    drawn.guesses += std::min(run->size(), drafts);
  }
  drawn.tokens.resize(kDraws);
  return drawn;
}

TEST(GumbelCouplingTest, GuessesAreRightAsOftenAsTheCouplingSays) {
  const double expected = CouplingExpectation(kTarget, kDraft);
  ASSERT_GT(expected, 0.5);
  for (const size_t drafts : {1, 4}) {
    const Drawn drawn = DrawAll(drafts, kDraft);
    const double share =
        static_cast<double>(drawn.right) / static_cast<double>(drawn.guesses);
    EXPECT_NEAR(share, expected, 0.03 * expected) << drafts;
  }
}

TEST(GumbelCouplingTest, TokensAreThoseOfTheTargetWithAndWithoutGuesses) {
  const Drawn plain = DrawAll(0, kDraft);
  EXPECT_LT(ChiSquare(plain.counts, kTarget), kChiSquareLimit);
  EXPECT_GT(ChiSquare(plain.counts, kDraft), 1000);
  for (const size_t drafts : {1, 4}) {
    const Drawn speculative = DrawAll(drafts, kDraft);
    EXPECT_LT(ChiSquare(speculative.counts, kTarget), kChiSquareLimit);
    EXPECT_EQ(speculative.tokens, plain.tokens);
  }
}

TEST(GumbelCouplingTest, ADraftOfTheSameDistributionIsAlwaysRight) {
  const Drawn drawn = DrawAll(4, kTarget);
  EXPECT_EQ(drawn.right, drawn.guesses);
}

std::vector<uint64_t> PositionsOfRun(const std::vector<TokenId>& drafts,
                                     const std::vector<TokenId>& drawn) {
  std::vector<uint64_t> positions;
  const auto run =
      DrawRun(RequestAt(7), drafts, [&](size_t row, const DrawRequest& draw) {
        positions.push_back(draw.position);
        SampledToken token;
        token.token = drawn[row];
        return token;
      });
  EXPECT_EQ(run->size(), positions.size());
  return positions;
}

TEST(DrawRunTest, StopsBehindTheFirstDifference) {
  EXPECT_THAT(PositionsOfRun({}, {5}), ElementsAre(7));
  EXPECT_THAT(PositionsOfRun({5, 6}, {4, 6, 9}), ElementsAre(7));
  EXPECT_THAT(PositionsOfRun({5, 6}, {5, 7, 9}), ElementsAre(7, 8));
  EXPECT_THAT(PositionsOfRun({5, 6}, {5, 6, 9}), ElementsAre(7, 8, 9));
}

TEST(DrawRunTest, AFailureEndsIt) {
  const std::vector<TokenId> drafts = {5, 6};
  const auto run = DrawRun(
      RequestAt(7), drafts,
      [&](size_t row, const DrawRequest&) -> absl::StatusOr<SampledToken> {
        if (row == 1) return absl::InternalError("NaN");
        return SampledToken{5, 0, {}};
      });
  EXPECT_EQ(run.status(), absl::InternalError("NaN"));
}

TEST(DrawRequestTest, AdvanceCountsTheTokenAndLiftsTheBan) {
  DrawRequest draw = RequestAt(7);
  draw.banned = {3};
  draw.banned_before = 9;
  draw.Advance(5);
  EXPECT_EQ(draw.position, 8u);
  EXPECT_EQ(draw.counts.OutputCount(5), 1u);
  EXPECT_THAT(draw.context().banned, ElementsAre(3));
  draw.Advance(5);
  EXPECT_EQ(draw.counts.OutputCount(5), 2u);
  EXPECT_TRUE(draw.context().banned.empty());
  EXPECT_EQ(draw.context().choice, 1u);
}

}  // namespace
}  // namespace baton
