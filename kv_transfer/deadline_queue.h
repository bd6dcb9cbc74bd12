#ifndef BATON_KV_TRANSFER_DEADLINE_QUEUE_H_
#define BATON_KV_TRANSFER_DEADLINE_QUEUE_H_

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/monotonic_time.h"

namespace baton::transfer {

// At most one deadline per id, earliest first. Deterministic: equal times are
// due in id order. Not thread-safe.
template <class Id>
class DeadlineQueue {
 public:
  // Replaces the deadline of `id`; kNever clears it.
  void Set(Id id, MonotonicTime when) {
    Clear(id);
    if (when == kNever) return;
    times_[id] = when;
    queue_.emplace(when, id);
  }

  void Clear(Id id) {
    auto it = times_.find(id);
    if (it == times_.end()) return;
    queue_.erase({it->second, id});
    times_.erase(it);
  }

  // Removes and returns an id whose deadline is at or before `now`.
  std::optional<Id> PopDue(MonotonicTime now) {
    if (queue_.empty() || queue_.begin()->first > now) return std::nullopt;
    const Id id = queue_.begin()->second;
    Clear(id);
    return id;
  }

  MonotonicTime Next() const {
    return queue_.empty() ? kNever : queue_.begin()->first;
  }

 private:
  std::map<Id, MonotonicTime> times_;
  std::set<std::pair<MonotonicTime, Id>> queue_;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_DEADLINE_QUEUE_H_
