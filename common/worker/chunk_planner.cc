#include "common/worker/chunk_planner.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/tokens/token.h"

namespace baton {
namespace {

// Tokens of long prompts for one of short ones that passed them.
constexpr uint32_t kShare = 4;

}  // namespace

void ChunkPlanner::Add(JobId job, uint32_t tokens, uint32_t first) {
  BATON_CHECK(tokens > 0);
  prompts_.push_back({job, first, first + tokens, ++turns_});
  tokens_ += tokens;
}

void ChunkPlanner::Remove(JobId job) {
  std::erase_if(prompts_, [&](const Prompt& prompt) {
    if (prompt.job != job) return false;
    tokens_ -= prompt.rest();
    return true;
  });
}

std::vector<ChunkPlanner::Chunk> ChunkPlanner::Next(uint32_t budget) {
  std::vector<Chunk> chunks;
  if (budget == 0) return chunks;
  std::vector<Prompt*> long_ones;
  for (Prompt& prompt : prompts_) {
    if (std::exchange(prompt.served, false)) prompt.turn = ++turns_;
    if (prompt.rest() > budget) long_ones.push_back(&prompt);
  }
  if (long_ones.empty()) allowance_ = budget / kShare;
  uint32_t left = budget;
  for (Prompt& prompt : prompts_) {
    if (left == 0) break;
    if (prompt.rest() > budget) continue;
    const bool passes = !long_ones.empty() && long_ones.front() < &prompt;
    if (passes && allowance_ <= 0) break;
    const uint32_t taken = Take(&prompt, left, &chunks);
    if (passes) allowance_ -= taken;
    left -= taken;
  }
  std::sort(long_ones.begin(), long_ones.end(),
            [](auto* a, auto* b) { return a->turn < b->turn; });
  for (Prompt* prompt : long_ones) {
    if (left == 0) break;
    const uint32_t taken = Take(prompt, left, &chunks);
    prompt->served = true;
    allowance_ = std::min<int64_t>(allowance_ + taken / kShare, budget);
    left -= taken;
  }
  std::erase_if(prompts_,
                [](const Prompt& prompt) { return prompt.rest() == 0; });
  return chunks;
}

uint32_t ChunkPlanner::Take(Prompt* prompt, uint32_t budget,
                            std::vector<Chunk>* chunks) {
  Chunk chunk{prompt->job, prompt->next, prompt->rest(), true};
  if (chunk.count > budget) {
    chunk.last = false;
    chunk.count = budget;
    const uint32_t overhang = (chunk.first + chunk.count) % kBlockTokens;
    if (overhang < chunk.count) chunk.count -= overhang;
  }
  prompt->next += chunk.count;
  tokens_ -= chunk.count;
  chunks->push_back(chunk);
  return chunk.count;
}

}  // namespace baton
