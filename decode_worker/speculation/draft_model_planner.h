#ifndef BATON_DECODE_WORKER_SPECULATION_DRAFT_MODEL_PLANNER_H_
#define BATON_DECODE_WORKER_SPECULATION_DRAFT_MODEL_PLANNER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/cost_model/cost_model.h"
#include "common/kv_cache/block_pool.h"
#include "common/sequence/sequence.h"
#include "common/worker/scheduler_events.h"
#include "common/worker/step_plan.h"

namespace baton::decode {

// A model that guesses, as the scheduler knows it.
struct DraftModelOptions {
  uint32_t blocks = 0;           // of its own pool
  uint32_t max_positions = 0;    // of a sequence
  uint32_t max_rows = 0;         // of one of its forward passes
  uint32_t tokens_per_step = 0;  // of prompts, beside what guesses need
  std::optional<CostModel> costs = {};
};

// What the draft model does in a step: which choices it guesses for and what
// KV it computes, from token ids alone, in blocks of its own. Choices of one
// job share the full blocks of the prompt; the partial last one is copied. A
// choice for which there is no block has no guesses. KV that a failure may have
// spoiled is given up and computed again, a few times. Pure.
class DraftModelPlanner {
 public:
  using Key = std::pair<JobId, uint32_t>;  // job and choice
  // A choice whose KV broke so often is not guessed for any more.
  static constexpr uint32_t kMostFailures = 3;

  DraftModelPlanner(WorkerEpoch epoch, DraftModelOptions options);

  const BlockPool& pool() const { return pool_; }
  const StepCosts* costs() const {
    return options_.costs.has_value() ? &options_.costs->costs() : nullptr;
  }

  // Forgets all other choices and frees their blocks.
  void KeepOnly(const std::set<Key>& keys);

  // That each of at most `most` guesses for the choice would be right once the
  // model has read its text, each given those before it. Valid until the next
  // call for that choice.
  absl::Span<const double> Acceptance(const Key& key, const Sequence& sequence,
                                      size_t most);

  // Makes a step of this plan: forget what the last one left. It is predicted
  // to take `step` without the draft model and may grow by `spare`; reading
  // takes a part of both, or one block of positions where that is more.
  void BeginStep(Duration step, Duration spare);
  // The model must read text of the choice before it can guess for it.
  bool Unread(const Key& key, const Sequence& sequence);
  // Takes as much of it into this step as there is room for; Plan adds it.
  // True: then all is read, it can guess in this step.
  bool Read(const Key& key, const Sequence& sequence, StepPlan* plan);
  // What is read in this step, a part of the first pass.
  const StepShape& reading() const { return reading_; }
  // Plans `count` guesses for span `span` of the plan, a decode span of the
  // choice, none where text is unread behind what Read took; 0 counts as a step
  // in which a choice could have guessed that is not being read. Returns how
  // many there will be at most.
  uint32_t Plan(const Key& key, const Sequence& sequence, size_t span,
                uint32_t count, StepPlan* plan);

  // How the model did in the step planned last: a status for each draft of the
  // plan, the time of each pass. Returns how many failed.
  uint32_t ObserveStep(absl::Span<const absl::Status> drafts,
                       absl::Span<const Duration> elapsed);
  // What became of the guesses for a choice that did not fail: so many of them
  // were right.
  void Observe(const Key& key, uint32_t guesses, uint32_t right);
  // No more guesses for the choice: one broke a step.
  void Stop(const Key& key);

 private:
  struct Choice {
    std::vector<BlockRef> blocks;
    uint32_t computed = 0;               // positions, with the step in flight
    uint32_t settled = 0;                // without it
    uint32_t known_end = 0, wanted = 0;  // of the step in flight
    uint32_t reads = 0;    // tokens, in the step that is being planned
    bool reading = false;  // in that step, or waits for its turn
    uint32_t failures = 0;
    double right = 0, all = 0;  // guesses, decayed
    bool stopped = false;
    std::shared_ptr<const SamplingParams> params;  // without logprobs
    std::vector<double> acceptance;
  };
  Choice& Of(const Key& key, const Sequence& sequence);
  // The other choice of the job with most of the prompt before this step, if
  // it has more than this one.
  const Choice* AheadInPrompt(const Key& key, const Choice& choice,
                              uint32_t prompt) const;
  // Another choice of the job reads on in this step, past this one.
  bool ReadForIt(const Key& key, const Choice& choice, uint32_t prompt) const;
  // Takes over what `ahead` has of the prompt.
  void Share(const Choice& ahead, uint32_t prompt, Choice& choice,
             StepPlan* plan);
  bool Cover(Choice& choice, uint32_t end, StepPlan* plan);
  void Release(Choice& choice);

  DraftModelOptions options_;
  BlockPool pool_;
  std::map<Key, Choice> choices_;
  uint32_t rows_left_ = 0, tokens_left_ = 0;  // of the step
  StepShape reading_;                         // of the step
  std::vector<StepShape> passes_;             // of the step
  std::vector<Key> planned_;                  // by draft of the step
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_DRAFT_MODEL_PLANNER_H_
