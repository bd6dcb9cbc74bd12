#include "router/admission/admission_queue.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "common/rpc/status.h"

namespace baton::router {
namespace {

constexpr Duration kMinRetryDelay = std::chrono::milliseconds(100);
constexpr Duration kMaxRetryDelay = std::chrono::seconds(10);

}  // namespace

AdmissionQueue::AdmissionQueue(AdmissionLimits limits) : limits_(limits) {}

absl::Status AdmissionQueue::Admit(const Item& item, MonotonicTime now) {
  const bool too_many = items_.size() >= limits_.max_requests;
  const bool too_long =
      !items_.empty() && tokens_ + item.tokens > limits_.max_tokens;
  if (too_many || too_long) {
    absl::Status status = absl::ResourceExhaustedError(
        too_many
            ? StrCat("queue: full (", items_.size(), " requests, allowed ",
                     limits_.max_requests, ")")
            : StrCat("queue: full (", tokens_, " prompt tokens and ",
                     item.tokens, " more, allowed ", limits_.max_tokens, ")"));
    AddRetryInfo(&status, RetryDelay(now));
    return status;
  }
  Insert(item);
  return absl::OkStatus();
}

void AdmissionQueue::Return(const Item& item) { Insert(item); }

bool AdmissionQueue::Remove(WorkId id) {
  const auto it = positions_.find(id);
  if (it == positions_.end()) return false;
  const auto item = items_.find(it->second);
  tokens_ -= item->second.tokens;
  items_.erase(item);
  positions_.erase(it);
  expiry_.Remove(id);
  return true;
}

const AdmissionQueue::Item* AdmissionQueue::Next(
    const std::optional<Position>& position) const {
  const auto it =
      position.has_value() ? items_.upper_bound(*position) : items_.begin();
  return it == items_.end() ? nullptr : &it->second;
}

std::optional<AdmissionQueue::Item> AdmissionQueue::PopExpired(
    MonotonicTime now) {
  const std::optional<WorkId> id = expiry_.PopDue(now);
  if (!id.has_value()) return std::nullopt;
  const Item item = items_.at(positions_.at(*id));
  Remove(*id);
  return item;
}

absl::Status AdmissionQueue::ExpiredError(MonotonicTime now) const {
  absl::Status status = absl::ResourceExhaustedError(StrCat(
      "queue: no worker had room within ", Seconds(limits_.max_age), " s"));
  AddRetryInfo(&status, RetryDelay(now));
  return status;
}

void AdmissionQueue::Insert(const Item& item) {
  const Position position = PositionOf(item);
  BATON_CHECK(positions_.emplace(item.id, position).second);
  items_.emplace(position, item);
  tokens_ += item.tokens;
  if (item.may_expire) expiry_.Set(item.id, item.since + limits_.max_age);
}

Duration AdmissionQueue::RetryDelay(MonotonicTime now) const {
  if (items_.empty()) return kMinRetryDelay;
  return std::clamp<Duration>(now - items_.begin()->second.since,
                              kMinRetryDelay, kMaxRetryDelay);
}

}  // namespace baton::router
