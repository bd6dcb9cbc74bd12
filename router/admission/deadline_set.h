#ifndef BATON_ROUTER_ADMISSION_DEADLINE_SET_H_
#define BATON_ROUTER_ADMISSION_DEADLINE_SET_H_

#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "common/base/monotonic_time.h"

namespace baton::router {

// Keys with one due time each, earliest first. All operations O(log n).
template <class Key>
class DeadlineSet {
 public:
  // Replaces an earlier time of the same key.
  void Set(Key key, MonotonicTime when) {
    Remove(key);
    times_.emplace(key, when);
    order_.emplace(when, key);
  }

  void Remove(Key key) {
    const auto it = times_.find(key);
    if (it == times_.end()) return;
    order_.erase(std::pair(it->second, key));
    times_.erase(it);
  }

  MonotonicTime earliest() const {
    return order_.empty() ? kNever : order_.begin()->first;
  }

  // Takes out one key that is due at `now`, the earliest first.
  std::optional<Key> PopDue(MonotonicTime now) {
    if (order_.empty() || order_.begin()->first > now) return std::nullopt;
    const Key key = order_.begin()->second;
    Remove(key);
    return key;
  }

 private:
  std::set<std::pair<MonotonicTime, Key>> order_;
  absl::flat_hash_map<Key, MonotonicTime> times_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ADMISSION_DEADLINE_SET_H_
