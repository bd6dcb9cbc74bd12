#ifndef BATON_COMMON_WORKER_CHUNK_PLANNER_H_
#define BATON_COMMON_WORKER_CHUNK_PLANNER_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "common/worker/scheduler_events.h"

namespace baton {

// Who computes how many prompt tokens in the next step. Prompts take turns: one
// that had its turn without finishing queues behind all that came before the
// next step is planned. So a long prompt delays another by at most one step,
// and short prompts share a step. Pure.
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

  // Where the next chunk begins. Requires !empty().
  uint32_t next_position() const {
    return ring_.empty() ? served_.front().next : ring_.front().next;
  }

  // Tokens not planned yet, over all prompts.
  uint64_t tokens() const { return tokens_; }
  bool empty() const { return tokens_ == 0; }

 private:
  struct Prompt {
    JobId job;
    uint32_t next = 0;
    uint32_t total = 0;
  };

  std::deque<Prompt> ring_;
  std::vector<Prompt> served_;  // by the last step, not finished
  uint64_t tokens_ = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_CHUNK_PLANNER_H_
