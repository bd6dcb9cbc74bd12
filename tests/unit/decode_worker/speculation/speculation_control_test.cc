#include "decode_worker/speculation/speculation_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace baton::decode {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr StepCosts kCosts{.fixed = 0.2e-3,
                           .weights = 4e-3,
                           .row = 1e-3,  // four rows are free
                           .logit_row = 0.1e-3,
                           .kv_token = 1e-6,
                           .pair = 0.2e-6};

StepShape Shape(const std::vector<DraftOffer>& offers, uint32_t prompt_rows) {
  StepShape step;
  for (const DraftOffer& offer : offers) {
    step.spans.push_back({offer.position, 1});
    ++step.logit_rows;
  }
  if (prompt_rows > 0) step.spans.push_back({0, prompt_rows});
  return step;
}

std::vector<uint32_t> Choose(const std::vector<std::vector<double>>& acceptance,
                             uint32_t max_rows = 100,
                             uint32_t prompt_rows = 0) {
  std::vector<DraftOffer> offers;
  for (const auto& one : acceptance) offers.push_back({100, one});
  return ChooseDrafts(kCosts, Shape(offers, prompt_rows), offers,
                      {.rows = max_rows});
}

TEST(SpeculationControlTest, GoodGuessesTakeTheFreeRows) {
  const std::vector<double> good(8, 0.9);
  EXPECT_GE(Choose({good})[0], 3u);
  EXPECT_THAT(Choose({std::vector<double>(8, 0.999)}), ElementsAre(8));
}

TEST(SpeculationControlTest, BadGuessesTakeNone) {
  EXPECT_THAT(Choose({std::vector<double>(8, 0.2)}), ElementsAre(0));
  EXPECT_THAT(Choose({{}}), ElementsAre(0));
  EXPECT_THAT(Choose({}), ElementsAre());
}

TEST(SpeculationControlTest, AFullerBatchTakesOnlyWhatIsNearlySure) {
  const auto choose = [](size_t sequences, double probability) {
    return Choose(std::vector<std::vector<double>>(
        sequences, std::vector<double>(8, probability)));
  };
  EXPECT_THAT(choose(7, 0.5), Each(0));
  EXPECT_THAT(choose(7, 0.99), testing::Contains(testing::Gt(0)));
  // Products twice as long as weights and fixed part: 8.4 rows.
  for (const double probability : {0.5, 0.9, 0.99, 1.0}) {
    EXPECT_THAT(choose(9, probability), Each(0));
    EXPECT_THAT(choose(16, probability), Each(0));
  }
}

TEST(SpeculationControlTest, TheBetterGuessesGoFirst) {
  const auto counts = Choose({{0.2, 0.2}, {0.95, 0.9}}, 2);
  EXPECT_THAT(counts, ElementsAre(0, 2));
}

TEST(SpeculationControlTest, RowsAreBounded) {
  EXPECT_THAT(Choose({std::vector<double>(8, 0.999)}, 3), ElementsAre(3));
  EXPECT_THAT(Choose({std::vector<double>(8, 0.999)}, 0), ElementsAre(0));
}

// Beside a prompt chunk no row is free.
TEST(SpeculationControlTest, BesideAPromptGuessesPay) {
  const std::vector<double> fair = {0.6, 0.45, 0.45};
  EXPECT_GT(Choose({fair}, 100, 0)[0], Choose({fair}, 100, 64)[0]);
}

// Guesses of a draft model cost its passes too, which sequences share.
TEST(SpeculationControlTest, AModelsGuessesMustPayForItsPasses) {
  const std::vector<double> good(4, 0.8);
  const auto choose = [&](double weights, size_t sequences) {
    const std::vector<DraftOffer> offers(sequences, DraftOffer{100, good});
    const StepCosts draft{.fixed = 0.05e-3,
                          .weights = weights,
                          .row = weights / 8,
                          .logit_row = 0.01e-3,
                          .kv_token = 1e-7,
                          .pair = 1e-7};
    return ChooseDrafts(kCosts, Shape(offers, 0), offers, {.rows = 100},
                        {&draft});
  };
  EXPECT_GT(choose(0.2e-3, 1)[0], 0u);
  EXPECT_THAT(choose(4e-3, 1), ElementsAre(0));
  EXPECT_THAT(choose(1.6e-3, 2), Each(testing::Gt(0)));
  EXPECT_GE(choose(0.2e-3, 1)[0], choose(1.6e-3, 1)[0]);
}

// As many as pay, but none that would take the step beyond its limit.
TEST(SpeculationControlTest, TheStepStaysWithinItsLimit) {
  const std::vector<double> good(12, 0.97);
  const StepCosts draft{.fixed = 0.05e-3,
                        .weights = 0.4e-3,
                        .row = 0.05e-3,
                        .logit_row = 0.01e-3,
                        .kv_token = 1e-7,
                        .pair = 1e-7};
  for (const StepCosts* model :
       {static_cast<const StepCosts*>(nullptr), &draft}) {
    for (const uint32_t prompt_rows : {0, 20}) {
      for (const size_t sequences : {1, 3}) {
        const std::vector<DraftOffer> offers(sequences, DraftOffer{100, good});
        const StepShape step = Shape(offers, prompt_rows);
        const auto choose = [&](double seconds) {
          return ChooseDrafts(kCosts, step, offers,
                              {.rows = 100, .seconds = seconds}, {model});
        };
        const auto paying = choose(std::numeric_limits<double>::infinity());
        const double alone = StepSeconds(kCosts, step);
        uint32_t last = 0;
        for (double limit = alone - 1e-3; limit < alone + 20e-3;
             limit += 0.3e-3) {
          const auto chosen = choose(limit);
          StepShape whole = step;
          uint32_t all = 0, passes = 0;
          for (size_t i = 0; i < sequences; ++i) {
            EXPECT_LE(chosen[i], paying[i]);
            all += chosen[i];
            passes = std::max(passes, chosen[i]);
            whole.spans[i].rows += chosen[i];
            whole.logit_rows += chosen[i];
          }
          EXPECT_GE(all, last);
          last = all;
          double seconds = StepSeconds(kCosts, whole);
          if (model != nullptr)
            seconds += passes * (draft.fixed + draft.weights);
          if (all > 0) {
            EXPECT_LE(seconds, limit + 1e-9);
          }
        }
        EXPECT_EQ(choose(alone + 1), paying);
        EXPECT_GT(last, 0u);
      }
    }
  }
}

// A pass that reads anyway is paid for: guesses beside that only add rows.
TEST(SpeculationControlTest, ReadingAndGuessingShareAPass) {
  const std::vector<double> good(4, 0.9);
  const StepCosts draft{.fixed = 0.5e-3,
                        .weights = 1e-3,
                        .row = 0.05e-3,
                        .logit_row = 0.01e-3,
                        .kv_token = 1e-7,
                        .pair = 1e-7};
  const std::vector<DraftOffer> offers(1, DraftOffer{100, good});
  const StepShape step = Shape(offers, 0);
  const double alone = StepSeconds(kCosts, step);
  const auto choose = [&](double seconds, const StepShape& reading) {
    return ChooseDrafts(kCosts, step, offers,
                        {.rows = 100, .seconds = alone + seconds},
                        {&draft, reading})[0];
  };
  const StepShape reading{.spans = {{0, 16}}};
  const double pass = StepSeconds(draft, reading);
  for (double spare = 0; spare < 20e-3; spare += 0.1e-3) {
    EXPECT_LE(choose(spare, reading), choose(spare, {})) << spare;
    // One guess needs no pass of its own, a second one does.
    EXPECT_EQ(choose(spare + pass, reading) > 0, spare > 0.15e-3) << spare;
  }
  EXPECT_EQ(choose(1.5e-3, {}), 0u);
  EXPECT_EQ(choose(pass - 1e-4, reading), 0u);
}

// No other choice of counts has a higher rate than the one made, but for the
// gain that is asked for.
TEST(SpeculationControlTest, NoOtherChoiceIsBetter) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> probability(0.05, 0.99);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::vector<double>> acceptance(1 + random() % 3);
    for (auto& one : acceptance) {
      one.resize(4);
      for (double& p : one) p = probability(random);
    }
    std::vector<DraftOffer> offers;
    for (const auto& one : acceptance) offers.push_back({100, one});
    const auto rate = [&](const std::vector<uint32_t>& counts) {
      StepShape step;
      double tokens = 0;
      for (size_t i = 0; i < offers.size(); ++i) {
        step.spans.push_back({100, counts[i] + 1});
        step.logit_rows += counts[i] + 1;
        double right = 1;
        tokens += right;
        for (uint32_t j = 0; j < counts[i]; ++j) {
          right *= acceptance[i][j];
          if (acceptance[i][j] < 0.25) return 0.0;
          tokens += right;
        }
      }
      return tokens / StepSeconds(kCosts, step);
    };
    const auto chosen =
        ChooseDrafts(kCosts, Shape(offers, 0), offers, {.rows = 100});
    std::vector<uint32_t> other(offers.size(), 0);
    double best = 0;
    while (true) {
      best = std::max(best, rate(other));
      size_t i = 0;
      while (i < other.size() && ++other[i] > 4) other[i++] = 0;
      if (i == other.size()) break;
    }
    // Guesses with a common cost go in the order of what is expected of them;
    // attention makes the cost of rows differ a little.
    EXPECT_GE(rate(chosen) * 1.04, best);
  }
}

}  // namespace
}  // namespace baton::decode
