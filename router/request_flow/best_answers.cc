#include "router/request_flow/best_answers.h"

#include <algorithm>
#include <utility>

namespace baton::router {

namespace {

// What the allocator adds to a small object, and a repeated field per element.
constexpr uint64_t kAllocation = 2 * sizeof(void*);

}  // namespace

uint64_t BestAnswers::MostBytes(uint64_t choices, uint64_t tokens,
                                uint64_t token_bytes,
                                std::optional<uint32_t> top_logprobs) {
  uint64_t token = sizeof(uint32_t) + token_bytes;
  if (top_logprobs.has_value()) {
    token += sizeof(v1::TokenLogprobs) + kAllocation +
             *top_logprobs * (sizeof(v1::TokenLogprob) + kAllocation);
  }
  // Strings and repeated fields have up to twice the room that they need.
  return choices * (tokens * token * 2 + sizeof(v1::GenerateEvent));
}

void BestAnswers::Add(v1::GenerateEvent event) {
  Answer& answer = answers_[event.choice()];
  for (const v1::TokenLogprobs& token : event.logprobs()) {
    answer.logprobs += token.logprob();
  }
  answer.tokens += event.token_ids_size();
  if (!tell_logprobs_) event.clear_logprobs();
  const size_t bytes = event.ByteSizeLong();
  if (answer.pieces.empty() ||
      (answer.last_bytes >= kPieceBytes && event.token_ids_size() > 0)) {
    answer.pieces.push_back(std::move(event));
    answer.last_bytes = bytes;
    return;
  }
  v1::GenerateEvent& last = answer.pieces.back();
  last.mutable_text()->append(event.text());
  event.clear_text();
  last.MergeFrom(event);
  answer.last_bytes += bytes;
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
  for (uint32_t i = 0; i < ranked.size(); ++i) {
    for (v1::GenerateEvent& piece : ranked[i].pieces) {
      piece.set_choice(i);
      best.push_back(std::move(piece));
    }
  }
  return best;
}

}  // namespace baton::router
