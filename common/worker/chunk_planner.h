#ifndef BATON_COMMON_WORKER_CHUNK_PLANNER_H_
#define BATON_COMMON_WORKER_CHUNK_PLANNER_H_

#include <cstdint>
#include <vector>

#include "common/worker/scheduler_events.h"

namespace baton {

// Who computes how many prompt tokens in the next step: in the order in which
// they came, which is the router's, but for two things. A prompt is short once
// what is left of it fits a step; short ones share a step and pass long ones,
// which so delay them by at most one chunk, until they have taken a fifth of
// the steps since: a flood of short prompts does not hold up a long one. Long
// ones take turns: one that had its turn queues behind all that came before the
// next step is planned. Pure.
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
  uint32_t next_position() const { return prompts_.front().next; }

  // Tokens not planned yet, over all prompts.
  uint64_t tokens() const { return tokens_; }
  bool empty() const { return tokens_ == 0; }

 private:
  struct Prompt {
    JobId job;
    uint32_t next = 0;
    uint32_t total = 0;
    uint64_t turn = 0;    // of long ones, the least is next
    bool served = false;  // by the last step
    uint32_t rest() const { return total - next; }
  };

  // Adds the next chunk of `prompt`, of at most `budget` tokens; its size.
  uint32_t Take(Prompt* prompt, uint32_t budget, std::vector<Chunk>* chunks);

  std::vector<Prompt> prompts_;  // not finished, oldest first
  uint64_t turns_ = 0;
  // Tokens that short prompts may still take before long ones that came
  // earlier; each may exceed it once.
  int64_t allowance_ = 0;
  uint64_t tokens_ = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_CHUNK_PLANNER_H_
