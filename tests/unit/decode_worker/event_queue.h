#ifndef BATON_TESTS_UNIT_DECODE_WORKER_EVENT_QUEUE_H_
#define BATON_TESTS_UNIT_DECODE_WORKER_EVENT_QUEUE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>
#include <variant>

#include "proto/decode.pb.h"
#include "proto/prefill.pb.h"

namespace baton {

// Events of both workers in the order they came, load reports left out.
class EventQueue {
 public:
  using Event = std::variant<v1::PrefillEvent, v1::DecodeEvent>;

  template <class E>
  void Add(E event) {
    if (event.has_load()) return;
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  // The oldest event of one kind that `wanted` accepts; others stay.
  template <class E, class Wanted>
  E Take(Wanted wanted) {
    std::unique_lock lock(mutex_);
    E found;
    const bool ok = changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      for (auto it = events_.begin(); it != events_.end(); ++it) {
        E* event = std::get_if<E>(&*it);
        if (event == nullptr || !wanted(*event)) continue;
        found = std::move(*event);
        events_.erase(it);
        return true;
      }
      return false;
    });
    EXPECT_TRUE(ok) << "the event did not come";
    return found;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
};

}  // namespace baton

#endif  // BATON_TESTS_UNIT_DECODE_WORKER_EVENT_QUEUE_H_
