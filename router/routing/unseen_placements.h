#ifndef BATON_ROUTER_ROUTING_UNSEEN_PLACEMENTS_H_
#define BATON_ROUTER_ROUTING_UNSEEN_PLACEMENTS_H_

#include <cstdint>
#include <map>

#include "common/base/ids.h"

namespace baton::router {

// Blocks of the attempts that were placed at a worker and that its newest load
// does not know of: the command was under way when it was sent. At most one
// entry per open attempt. Pure.
class UnseenPlacements {
 public:
  void Add(AttemptId attempt, uint64_t blocks) {
    blocks_ += blocks;
    placed_[attempt] = blocks;
  }
  // It is over, whether the worker has seen it or not.
  void Remove(AttemptId attempt) {
    const auto it = placed_.find(attempt);
    if (it != placed_.end()) Drop(it);
  }
  // A load knows of this attempt and of all before; ids rise.
  void SeenUpTo(AttemptId attempt) {
    while (!placed_.empty() && placed_.begin()->first <= attempt) {
      Drop(placed_.begin());
    }
  }
  uint64_t blocks() const { return blocks_; }

 private:
  void Drop(std::map<AttemptId, uint64_t>::iterator it) {
    blocks_ -= it->second;
    placed_.erase(it);
  }
  std::map<AttemptId, uint64_t> placed_;
  uint64_t blocks_ = 0;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_UNSEEN_PLACEMENTS_H_
