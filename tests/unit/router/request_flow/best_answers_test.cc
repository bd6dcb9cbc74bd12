#include "router/request_flow/best_answers.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace baton::router
