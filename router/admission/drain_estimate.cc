#include "router/admission/drain_estimate.h"

#include <algorithm>
#include <utility>

namespace baton::router {
namespace {

constexpr Duration kSpan = std::chrono::milliseconds(250);

}  // namespace

void DrainEstimate::Span::Add(const Span& other) {
  waiting += other.waiting;
  tokens += other.tokens;
  prompts += other.prompts;
  longest = std::max(longest, other.longest);
}

void DrainEstimate::Waiting(bool any, MonotonicTime now) {
  Advance(now);
  waiting_ = any;
}

void DrainEstimate::Served(uint64_t tokens, MonotonicTime now) {
  if (waiting_ && now >= last_) {
    current_.tokens += tokens;
    ++current_.prompts;
    current_.longest = std::max(current_.longest, tokens);
  }
  Advance(now);
}

std::optional<double> DrainEstimate::Rate(MonotonicTime now) {
  Advance(now);
  uint64_t longest = current_.longest;
  for (const Span& span : spans_) longest = std::max(longest, span.longest);
  const auto enough = [&](const Span& sum) {
    return sum.waiting >= kRecent && sum.prompts >= kEnough &&
           sum.tokens >= kEnoughOfTheLongest * longest;
  };
  Span sum = current_;
  for (auto span = spans_.rbegin(); span != spans_.rend(); ++span) {
    if (sum.waiting >= kLongest || enough(sum)) break;
    sum.Add(*span);
  }
  const bool known = (sum.waiting >= kFirst && sum.prompts >= kFew) ||
                     (sum.waiting >= kFirstOfFew && sum.tokens > 0);
  if (!known) return std::nullopt;
  return static_cast<double>(sum.tokens) / Seconds(sum.waiting);
}

void DrainEstimate::Advance(MonotonicTime now) {
  if (now > last_) {
    if (waiting_) current_.waiting += now - last_;
    last_ = now;
  }
  if (current_.waiting >= kSpan) {
    current_.end = now;
    spans_.push_back(std::exchange(current_, {}));
    if (spans_.size() > size_t{kLongest / kSpan}) spans_.pop_front();
  }
  while (!spans_.empty() && now - spans_.front().end > kMaxAge) {
    spans_.pop_front();
  }
}

}  // namespace baton::router
