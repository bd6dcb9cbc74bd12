#include "router/request_flow/best_answers.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::router {
namespace {

v1::GenerateEvent Event(uint32_t choice, const char* text,
                        const std::vector<float>& logprobs) {
  v1::GenerateEvent event;
  event.set_choice(choice);
  event.set_text(text);
  for (const float logprob : logprobs) {
    event.add_token_ids(choice);
    event.add_logprobs()->set_logprob(logprob);
  }
  return event;
}

TEST(BestAnswers, RanksByTheMeanNotTheSum) {
  BestAnswers best(2, true);
  best.Add(Event(0, "a", {-1.0F}));
  best.Add(Event(1, "b", {-0.5F, -0.5F}));
  best.Add(Event(1, "c", {-0.5F, -0.5F}));
  best.Add(Event(2, "d", {-0.75F}));
  const auto answers = best.Take();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].choice(), 0u);
  EXPECT_EQ(answers[0].text(), "bc");
  EXPECT_EQ(answers[0].token_ids_size(), 4);
  EXPECT_EQ(answers[0].logprobs_size(), 4);
  EXPECT_EQ(answers[1].choice(), 1u);
  EXPECT_EQ(answers[1].text(), "d");
  EXPECT_TRUE(best.Take().empty());
}

TEST(BestAnswers, EqualOnesKeepTheirOrder) {
  BestAnswers best(3, true);
  for (const uint32_t choice : {2u, 0u, 1u}) {
    best.Add(Event(choice, "", {-1.0F}));
  }
  const auto answers = best.Take();
  ASSERT_EQ(answers.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(answers[i].token_ids(0), i);
}

TEST(BestAnswers, TellsLogprobsOnlyToWhoAsked) {
  BestAnswers best(1, false);
  best.Add(Event(0, "worse", {-2.0F}));
  best.Add(Event(1, "better", {-1.0F}));
  v1::GenerateEvent end;
  end.set_choice(1);
  end.mutable_finish()->set_reason(v1::FINISH_REASON_STOP);
  best.Add(std::move(end));
  const auto answers = best.Take();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].text(), "better");
  EXPECT_EQ(answers[0].logprobs_size(), 0);
  EXPECT_EQ(answers[0].finish().reason(), v1::FINISH_REASON_STOP);
}

TEST(BestAnswers, ComeInBoundedPieces) {
  constexpr size_t kTokens = 500;
  const std::string text(1000, 'x');
  BestAnswers best(2, true);
  for (size_t i = 0; i < kTokens; ++i) {
    best.Add(Event(0, text.c_str(), {-1.0F}));
    best.Add(Event(1, text.c_str(), {-0.5F}));
  }
  v1::GenerateEvent end;
  end.set_choice(1);
  end.mutable_finish()->set_reason(v1::FINISH_REASON_STOP);
  best.Add(std::move(end));
  size_t tokens[2] = {};
  uint32_t last = 0;
  for (const v1::GenerateEvent& piece : best.Take()) {
    EXPECT_LT(piece.ByteSizeLong(), BestAnswers::kPieceBytes + 2 * text.size());
    EXPECT_GE(piece.choice(), last) << "one answer after the other";
    last = piece.choice();
    tokens[piece.choice()] += piece.token_ids_size();
    EXPECT_EQ(piece.text().size(), piece.token_ids_size() * text.size());
    EXPECT_EQ(piece.has_finish(), piece.choice() == 0 && tokens[0] == kTokens);
  }
  EXPECT_EQ(tokens[0], kTokens);
  EXPECT_EQ(tokens[1], kTokens);
}

TEST(BestAnswers, TakeNoMoreMemoryThanTheySayBefore) {
  for (const int top : {-1, 0, 20}) {
    BestAnswers best(1, top >= 0);
    for (int i = 0; i < 300; ++i) {
      v1::GenerateEvent event = Event(0, "12345678", {-1.0F});
      event.set_token_ids(0, 1 << 30);
      for (int k = 0; k < top; ++k) {
        v1::TokenLogprob* one = event.mutable_logprobs(0)->add_top();
        one->set_token_id(k);
        one->set_logprob(-2);
      }
      best.Add(std::move(event));
    }
    uint64_t bytes = 0;
    for (const auto& piece : best.Take()) bytes += piece.SpaceUsedLong();
    const std::optional<uint32_t> told =
        top < 0 ? std::nullopt : std::optional<uint32_t>(top);
    EXPECT_LE(bytes, BestAnswers::MostBytes(1, 300, 8, told)) << top;
    EXPECT_EQ(BestAnswers::MostBytes(4, 300, 8, told),
              4 * BestAnswers::MostBytes(1, 300, 8, told));
  }
}

}  // namespace
}  // namespace baton::router
