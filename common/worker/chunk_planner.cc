#include "common/worker/chunk_planner.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/tokens/token.h"

namespace baton {

void ChunkPlanner::Add(JobId job, uint32_t tokens, uint32_t first) {
  BATON_CHECK(tokens > 0);
  prompts_.push_back({job, first, first + tokens});
  tokens_ += tokens;
}

void ChunkPlanner::Remove(JobId job) {
  for (std::vector<Prompt>* prompts : {&prompts_, &served_}) {
    std::erase_if(*prompts, [&](const Prompt& prompt) {
      if (prompt.job != job) return false;
      tokens_ -= prompt.rest();
      return true;
    });
  }
}

std::vector<ChunkPlanner::Chunk> ChunkPlanner::Next(uint32_t budget) {
  std::vector<Chunk> chunks;
  if (budget == 0) return chunks;
  prompts_.insert(prompts_.end(), served_.begin(), served_.end());
  served_.clear();
  const bool any_long =
      std::any_of(prompts_.begin(), prompts_.end(),
                  [&](const Prompt& prompt) { return prompt.rest() > budget; });
  const uint32_t kept =
      any_long && long_waits_ ? std::max(budget / 2, uint32_t{1}) : 0;
  const uint32_t left =
      kept + Take(/*long_ones=*/false, budget, budget - kept, &chunks);
  long_waits_ = any_long && left == 0;
  Take(/*long_ones=*/true, budget, left, &chunks);
  return chunks;
}

uint32_t ChunkPlanner::Take(bool long_ones, uint32_t short_tokens,
                            uint32_t budget, std::vector<Chunk>* chunks) {
  std::erase_if(prompts_, [&](Prompt& prompt) {
    if (budget == 0 || (prompt.rest() > short_tokens) != long_ones) {
      return false;
    }
    Chunk chunk{prompt.job, prompt.next, prompt.rest(), true};
    if (chunk.count > budget) {
      chunk.last = false;
      chunk.count = budget;
      const uint32_t overhang = (chunk.first + chunk.count) % kBlockTokens;
      if (overhang < chunk.count) chunk.count -= overhang;
    }
    prompt.next += chunk.count;
    tokens_ -= chunk.count;
    budget -= chunk.count;
    chunks->push_back(chunk);
    if (long_ones) served_.push_back(prompt);
    return chunk.last || long_ones;
  });
  return budget;
}

}  // namespace baton
