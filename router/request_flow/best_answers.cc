#include "router/request_flow/best_answers.h"

#include <algorithm>
#include <utility>

namespace baton::router {

void BestAnswers::Add(v1::GenerateEvent event) {
  Answer& answer = answers_[event.choice()];
  for (const v1::TokenLogprobs& token : event.logprobs()) {
    answer.logprobs += token.logprob();
  }
  if (!tell_logprobs_) event.clear_logprobs();
  answer.event.mutable_text()->append(event.text());
  event.clear_text();
  answer.event.MergeFrom(event);
}

std::vector<v1::GenerateEvent> BestAnswers::Take() {
  std::vector<Answer> ranked;
  for (auto& [choice, answer] : std::exchange(answers_, {})) {
    ranked.push_back(std::move(answer));
  }
  std::stable_sort(
      ranked.begin(), ranked.end(),
      [](const Answer& a, const Answer& b) { return a.mean() > b.mean(); });
  if (ranked.size() > count_) ranked.resize(count_);
  std::vector<v1::GenerateEvent> best;
  for (Answer& answer : ranked) {
    answer.event.set_choice(static_cast<uint32_t>(best.size()));
    best.push_back(std::move(answer.event));
  }
  return best;
}

}  // namespace baton::router
