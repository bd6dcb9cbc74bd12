#include "common/worker/chunk_planner.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/tokens/token.h"

namespace baton {

void ChunkPlanner::Add(JobId job, uint32_t tokens) {
  BATON_CHECK(tokens > 0);
  ring_.push_back({job, 0, tokens});
  tokens_ += tokens;
}

void ChunkPlanner::Remove(JobId job) {
  auto it = std::find_if(ring_.begin(), ring_.end(),
                         [job](const Prompt& p) { return p.job == job; });
  if (it == ring_.end()) return;
  tokens_ -= it->total - it->next;
  ring_.erase(it);
}

std::vector<ChunkPlanner::Chunk> ChunkPlanner::Next(uint32_t budget) {
  std::vector<Chunk> chunks;
  const size_t turns = ring_.size();
  for (size_t turn = 0; turn < turns && budget > 0; ++turn) {
    Prompt prompt = ring_.front();
    ring_.pop_front();
    Chunk chunk{prompt.job, prompt.next, prompt.total - prompt.next, true};
    if (chunk.count > budget) {
      chunk.last = false;
      chunk.count = budget;
      const uint32_t overhang = (chunk.first + chunk.count) % kBlockTokens;
      if (overhang < chunk.count) chunk.count -= overhang;
    }
    prompt.next += chunk.count;
    tokens_ -= chunk.count;
    budget -= chunk.count;
    if (!chunk.last) ring_.push_back(prompt);
    chunks.push_back(chunk);
  }
  return chunks;
}

}  // namespace baton
