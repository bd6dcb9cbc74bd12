#include "decode_worker/speculation/speculation_control.h"

#include <algorithm>
#include <cstddef>
#include <queue>

namespace baton::decode {
namespace {

// Predictions are not exact: what gains less than this is not done.
constexpr double kLeastGain = 1.03;
// Nor is a guess made that is probably wrong, however cheap its row looks.
constexpr double kLeastAcceptance = 0.25;

// A batch whose rows take so many times what a step takes anyway (weights and
// fixed part, so more rows than twice those that are free) computes
// nothing but what is needed: the little that guesses may gain there is not
// worth a wrong one.
constexpr double kFullBatch = 2;

// The next guess of an offer.
struct Next {
  double tokens = 0;  // expected of it
  size_t offer = 0;
  friend bool operator<(const Next& a, const Next& b) {
    return a.tokens != b.tokens ? a.tokens < b.tokens : a.offer > b.offer;
  }
};

bool Likely(const DraftOffer& offer, size_t guess) {
  return guess < offer.acceptance.size() &&
         offer.acceptance[guess] >= kLeastAcceptance;
}

// Of one more row, at that position, in a pass of the draft model.
double PassSeconds(const StepCosts& draft, uint32_t position, uint32_t rows) {
  return (rows == 0 ? draft.fixed : 0) + RowsSeconds(draft, rows + 1) -
         RowsSeconds(draft, rows) + draft.logit_row +
         SpanSeconds(draft, {position, 1});
}

}  // namespace

std::vector<uint32_t> ChooseDrafts(const StepCosts& costs,
                                   const StepShape& step,
                                   const std::vector<DraftOffer>& offers,
                                   const DraftLimits& limits,
                                   const DraftPasses& draft) {
  std::vector<uint32_t> chosen(offers.size(), 0);
  std::priority_queue<Next> guesses;
  // Prompt chunks are no part of the time that the tokens are for, but guesses
  // pay for rows beside them.
  StepShape decode;
  for (size_t i = 0; i < offers.size(); ++i) {
    decode.spans.push_back({offers[i].position, 1});
    ++decode.logit_rows;
    if (Likely(offers[i], 0)) {
      guesses.push({offers[i].acceptance.front(), i});
    }
  }
  const bool full = static_cast<double>(offers.size()) >=
                    kFullBatch * (costs.fixed + costs.weights) / costs.row;
  if (guesses.empty() || full) return chosen;
  double tokens = static_cast<double>(offers.size());
  double seconds = StepSeconds(costs, decode);
  const double alone = seconds;
  double best_rate = kLeastGain * tokens / seconds;
  double most_seconds = alone + limits.seconds - StepSeconds(costs, step);

  const uint32_t rows = step.rows();
  std::vector<uint32_t> taken(offers.size(), 0);
  std::vector<size_t> order;
  std::vector<uint32_t> pass_rows;  // of the draft model
  if (draft.costs != nullptr && draft.reading.rows() > 0) {
    most_seconds -= StepSeconds(*draft.costs, draft.reading);
    pass_rows.push_back(draft.reading.rows());
  }
  size_t best = 0;  // of the order
  while (!guesses.empty() && order.size() < limits.rows) {
    const Next next = guesses.top();
    guesses.pop();
    const DraftOffer& offer = offers[next.offer];
    uint32_t& count = taken[next.offer];
    const auto added = static_cast<uint32_t>(order.size());
    seconds += RowsSeconds(costs, rows + added + 1) -
               RowsSeconds(costs, rows + added) + costs.logit_row +
               SpanSeconds(costs, {offer.position, count + 2}) -
               SpanSeconds(costs, {offer.position, count + 1});
    if (draft.costs != nullptr) {
      pass_rows.resize(std::max<size_t>(pass_rows.size(), count + 1), 0);
      seconds +=
          PassSeconds(*draft.costs, offer.position + count, pass_rows[count]);
      ++pass_rows[count];
    }
    if (seconds > most_seconds) break;
    tokens += next.tokens;
    ++count;
    order.push_back(next.offer);
    if (tokens / seconds > best_rate) {
      best_rate = tokens / seconds;
      best = order.size();
    }
    if (Likely(offer, count)) {
      guesses.push({next.tokens * offer.acceptance[count], next.offer});
    }
  }
  for (size_t i = 0; i < best; ++i) ++chosen[order[i]];
  return chosen;
}

}  // namespace baton::decode
