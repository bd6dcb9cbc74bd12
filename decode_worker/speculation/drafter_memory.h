#ifndef BATON_DECODE_WORKER_SPECULATION_DRAFTER_MEMORY_H_
#define BATON_DECODE_WORKER_SPECULATION_DRAFTER_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace baton::decode {

// The memory that all drafters of a worker share. Pure bookkeeping: bytes are
// taken here before they are allocated, never more than the limit.
class DrafterMemory {
 public:
  explicit DrafterMemory(size_t limit) : limit_(limit) {}

  // False: they do not fit, nothing was taken.
  bool Take(size_t bytes) {
    if (bytes > limit_ - held_) return false;
    held_ += bytes;
    return true;
  }
  // Requires that they were taken.
  void Give(size_t bytes) { held_ -= bytes; }

  size_t held() const { return held_; }
  size_t limit() const { return limit_; }

 private:
  const size_t limit_;
  size_t held_ = 0;
};

// How many tokens each drafter reads in a step, `budget` in all: who has few
// unread reads them all, the others get equal shares. Those with long prompts
// do not hold up the rest, and read all in the end if together they gain fewer
// than `budget` tokens a step; else the last of them stay behind.
std::vector<uint32_t> ShareTokens(absl::Span<const uint64_t> unread,
                                  uint32_t budget);

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_DRAFTER_MEMORY_H_
