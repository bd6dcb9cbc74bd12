#include "common/sampling/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace baton {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Logits with many ties, so that the order by id matters.
std::vector<float> RandomLogits(std::mt19937& random, size_t n, float spread) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = std::round(normal(random) * 8) / 8;
  return logits;
}

std::vector<Candidate> Ranked(const std::vector<float>& logits) {
  std::vector<Candidate> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] != -kInfinity) {
      all.push_back({logits[i], static_cast<TokenId>(i)});
    }
  }
  std::stable_sort(
      all.begin(), all.end(),
      [](const Candidate& a, const Candidate& b) { return a.logit > b.logit; });
  return all;
}

TEST(CandidatesTest, TopKEqualsASort) {
  std::mt19937 random(1);
  for (const float spread : {0.1f, 3.0f, 60.0f, 1e30f}) {
    std::vector<float> logits = RandomLogits(random, 700, spread);
    logits[3] = logits[500] = -kInfinity;
    std::fill_n(logits.begin() + 64, 64, -kInfinity);  // a whole block
    const std::vector<Candidate> ranked = Ranked(logits);
    for (const size_t k : {1, 2, 5, 10, 11, 50, 333, 633, 634}) {
      EXPECT_EQ(TopKCut(LogitBlocks(logits), k), ranked[k - 1])
          << spread << " " << k;
    }
    EXPECT_EQ(TopKCut(LogitBlocks(logits), 635), Candidate());
  }
}

TEST(CandidatesTest, TopPEqualsASort) {
  std::mt19937 random(2);
  for (const float spread : {0.1f, 3.0f, 60.0f}) {
    for (const float temperature : {0.1f, 1.0f, 2.0f}) {
      const std::vector<float> logits = RandomLogits(random, 900, spread);
      const std::vector<Candidate> ranked = Ranked(logits);
      for (const size_t kept : {1, 40, 900}) {
        double total = 0;
        std::vector<double> masses;
        for (size_t i = 0; i < kept; ++i) {
          masses.push_back(std::exp(
              (static_cast<double>(ranked[i].logit) - ranked[0].logit) /
              temperature));
          total += masses.back();
        }
        // Not near a possible sum, where rounding may decide either way.
        for (const float p : {0.0123f, 0.31f, 0.5077f, 0.9021f, 0.9903f}) {
          double sum = 0;
          size_t i = 0;
          while (i < kept && (sum += masses[i]) < p * total) ++i;
          const Candidate within = kept == 900 ? Candidate() : ranked[kept - 1];
          EXPECT_EQ(TopPCut(LogitBlocks(logits), temperature, p, within),
                    ranked[i])
              << spread << " " << temperature << " " << kept << " " << p;
        }
      }
    }
  }
}

TEST(CandidatesTest, RankedUpToIsSortedAndComplete) {
  std::mt19937 random(3);
  const std::vector<float> logits = RandomLogits(random, 300, 1.0f);
  const std::vector<Candidate> ranked = Ranked(logits);
  const std::vector<Candidate> first20 =
      RankedUpTo(LogitBlocks(logits), ranked[19]);
  EXPECT_EQ(first20,
            std::vector<Candidate>(ranked.begin(), ranked.begin() + 20));
  EXPECT_EQ(RankedUpTo(LogitBlocks(logits), Candidate()), ranked);
}

}  // namespace
}  // namespace baton
