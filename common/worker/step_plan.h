#ifndef BATON_COMMON_WORKER_STEP_PLAN_H_
#define BATON_COMMON_WORKER_STEP_PLAN_H_

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/cost_model/step_shape.h"
#include "common/engine/engine.h"
#include "common/kv_cache/block_pool.h"
#include "common/tokens/token.h"
#include "common/worker/sequence_spec.h"

namespace baton {

// A StepSpan that names its blocks instead of their memory.
struct PlannedSpan {
  std::vector<TokenId> tokens;
  bool drafted = false;
  uint32_t first_position = 0;
  std::vector<BlockRef> blocks;  // cover first_position + tokens.size()
  std::vector<DrawRequest> draws;
};

// The whole of `from` into `to`.
struct BlockCopy {
  BlockRef from;
  BlockRef to;
};

// The first `positions` of `from` into `to`, with nothing written behind them.
struct BlockStartCopy {
  BlockRef from;
  BlockRef to;
  uint32_t positions = 0;
};

// Guesses that a draft model makes right before the pass.
struct PlannedDraft {
  size_t span = 0;     // that verifies them, drafted; they join its tokens
  uint32_t count = 0;  // 0: only KV is computed
  // A DraftSpan's, in blocks of the draft model's pool.
  PlannedSpan known;
};

// One forward pass as a scheduler wants it, in this order: zero the cleared
// blocks, copy, let the draft model guess, run the spans, zero the KV of
// rejected guesses. Every block named stays held by the scheduler until the
// StepDone of that number.
struct StepPlan {
  uint64_t number = 0;  // 1, 2, 3, ...
  std::vector<BlockRef> cleared;
  std::vector<BlockCopy> copies;
  std::vector<PlannedSpan> spans;
  // Of the draft model's pool, as `cleared` and `copies`.
  std::vector<BlockRef> draft_cleared;
  std::vector<BlockStartCopy> draft_copies;
  std::vector<PlannedDraft> drafts;

  // Of the spans, with guesses still to be made.
  size_t rows() const {
    size_t rows = 0;
    for (const PlannedSpan& span : spans) rows += span.tokens.size();
    for (const PlannedDraft& draft : drafts) rows += draft.count;
    return rows;
  }
};

// What its time depends on.
StepShape ShapeOf(const StepPlan& plan);

// Adds a span over `count` context tokens of a request from position `first`
// on, kept in `blocks`, and clears the blocks that it begins. `draw`: it is the
// prompt's last, every choice gets its first token.
void AddPromptSpan(const SequenceRequest& request, uint32_t first,
                   uint32_t count, bool draw,
                   const std::vector<BlockRef>& blocks, StepPlan* plan);

// One row and a draw that mean nothing: does the hardware compute?
StepPlan ProbePlan(const std::vector<BlockRef>& block);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_STEP_PLAN_H_
