#ifndef BATON_COMMON_WORKER_STEP_DRIVER_H_
#define BATON_COMMON_WORKER_STEP_DRIVER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/engine/draft_run.h"
#include "common/engine/engine.h"
#include "common/kv_cache/block_pool.h"
#include "common/kv_cache/kv_memory.h"
#include "common/model/model.h"
#include "common/worker/scheduler_events.h"
#include "common/worker/step_plan.h"

namespace baton {

// A second model that guesses what the first one says.
struct DraftModelParts {
  const Model* model = nullptr;  // null: none
  KvMemory* memory = nullptr;
};

// The compute thread of a worker: turns block references into memory and runs
// forward passes, one at a time.
class StepDriver {
 public:
  // Runs on the compute thread; must only hand the result on.
  using OnDone = std::function<void(StepDone)>;

  // The models and memories outlive the driver; `draft` may have none. Steps
  // and passes of the draft model have at most `max_rows`.
  StepDriver(const Model* model, KvMemory* memory, uint32_t max_rows,
             OnDone on_done, DraftModelParts draft = {});
  // Waits for the step in flight; its result is still handed on.
  ~StepDriver();
  StepDriver(const StepDriver&) = delete;
  StepDriver& operator=(const StepDriver&) = delete;

  // Checks every reference against the pool and starts the step. Requires that
  // no step is in flight. A step that cannot run answers with an INTERNAL
  // status in every span. Call it where the pools are used; `draft_pool` may be
  // null where there is no draft model.
  void Run(StepPlan plan, const BlockPool& pool,
           const BlockPool* draft_pool = nullptr);

 private:
  // What the compute thread works on.
  struct Step {
    uint64_t number = 0;
    size_t results = 0;    // spans planned
    absl::Status refusal;  // a reference was stale; spans are not complete
    std::vector<BlockId> cleared;
    std::vector<std::pair<BlockId, BlockId>> copies;  // from, to
    std::vector<StepSpan> spans;
    struct StartCopy {
      BlockId from, to;
      uint32_t positions;
    };
    std::vector<BlockId> draft_cleared;
    std::vector<StartCopy> draft_copies;
    std::vector<size_t> verifying;  // span of each of the drafts
    std::vector<DraftSpan> drafts;
  };

  absl::Status Resolve(StepPlan& plan, const BlockPool& pool,
                       const BlockPool* draft_pool, Step* step);
  void Loop();
  StepResult Compute(Step& step);
  // Lets the draft model guess into the tokens of the spans.
  DraftRun MakeGuesses(Step& step);
  void ClearRejected(const Step& step, const StepResult& result);

  KvMemory* const memory_;
  Engine engine_;
  KvMemory* const draft_memory_;
  const std::unique_ptr<Engine> draft_engine_;
  const OnDone on_done_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<Step> next_;  // mutex_
  bool stopping_ = false;     // mutex_
  std::thread thread_;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_STEP_DRIVER_H_
