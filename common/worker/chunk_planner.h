#ifndef BATON_COMMON_WORKER_CHUNK_PLANNER_H_
#define BATON_COMMON_WORKER_CHUNK_PLANNER_H_

#include <cstdint>
#include <vector>

#include "common/worker/scheduler_events.h"

namespace baton {

// Who computes how many prompt tokens in the next step. A prompt is short once
// what is left of it fits a step. Short ones share a step and go first, in the
// order in which they came, so long ones delay them by at most one chunk,
// however many there are. Long ones take turns and get half of a step at least
// every second step: one that had its turn queues behind all that came before
// the next step is planned. Pure.
class ChunkPlanner {
 public:
  struct Chunk {
    JobId job;
    uint32_t first = 0;  // position
    uint32_t count = 0;  // >= 1
    bool last = false;   // reaches the end of the prompt
  };

  // Positions first..first+tokens-1 of a prompt that has none here. Requires
  // tokens >= 1.
  void Add(JobId job, uint32_t tokens, uint32_t first = 0);
  // No effect for unknown or completely planned prompts.
  void Remove(JobId job);

  // At most `budget` tokens in total. A chunk that does not finish its prompt
  // ends on a block border where it can, so that blocks become complete early.
  std::vector<Chunk> Next(uint32_t budget);

  // Where the next chunk of who waits longest begins. Requires !empty().
  uint32_t next_position() const {
    return prompts_.empty() ? served_.front().next : prompts_.front().next;
  }

  // Tokens not planned yet, over all prompts.
  uint64_t tokens() const { return tokens_; }
  bool empty() const { return tokens_ == 0; }

 private:
  struct Prompt {
    JobId job;
    uint32_t next = 0;
    uint32_t total = 0;
    uint32_t rest() const { return total - next; }
  };

  // Takes chunks of at most `budget` tokens in total from the prompts that are
  // long, or are not, and returns what it did not use.
  uint32_t Take(bool long_ones, uint32_t short_tokens, uint32_t budget,
                std::vector<Chunk>* chunks);

  std::vector<Prompt> prompts_;
  std::vector<Prompt> served_;  // by the last step, not finished, long
  bool long_waits_ = false;     // got nothing of the last step
  uint64_t tokens_ = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_CHUNK_PLANNER_H_
