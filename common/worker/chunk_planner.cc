#include "common/worker/chunk_planner.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/tokens/token.h"

namespace baton {

void ChunkPlanner::Add(JobId job, uint32_t tokens, uint32_t first) {
  BATON_CHECK(tokens > 0);
  ring_.push_back({job, first, first + tokens});
  tokens_ += tokens;
}

void ChunkPlanner::Remove(JobId job) {
  auto remove_from = [&](auto& prompts) {
    std::erase_if(prompts, [&](const Prompt& prompt) {
      if (prompt.job != job) return false;
      tokens_ -= prompt.total - prompt.next;
      return true;
    });
  };
  remove_from(ring_);
  remove_from(served_);
}

std::vector<ChunkPlanner::Chunk> ChunkPlanner::Next(uint32_t budget) {
  ring_.insert(ring_.end(), served_.begin(), served_.end());
  served_.clear();
  std::vector<Chunk> chunks;
  while (budget > 0 && !ring_.empty()) {
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
    if (!chunk.last) served_.push_back(prompt);
    chunks.push_back(chunk);
  }
  return chunks;
}

}  // namespace baton
