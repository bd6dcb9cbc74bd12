// Part of DecodeScheduler: who gets its blocks back, and what is computed
// again.
#include <algorithm>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"
#include "decode_worker/decode_scheduler.h"

namespace baton::decode {

std::vector<DecodeJob*> DecodeScheduler::Waiting() {
  std::vector<DecodeJob*> waiting;
  for (auto& [id, job] : jobs_) {
    const bool uncovered = job.phase == Phase::kDecoding && !job.covered;
    if (uncovered || job.phase == Phase::kPreempted) waiting.push_back(&job);
  }
  std::sort(waiting.begin(), waiting.end(),
            [](auto* a, auto* b) { return a->rank() < b->rank(); });
  return waiting;
}

void DecodeScheduler::ReturnPreempted(MonotonicTime now) {
  for (DecodeJob* job : Waiting()) {
    // What comes free is for whoever ranks first.
    if (job->phase == Phase::kDecoding) return;
    if (WaitsForBatch(*job)) continue;
    if (!FitsWithout(*job, {})) MakeRoom(*job);
    if (!FitsWithout(*job, {})) return;
    Return(*job, now);
  }
}

bool DecodeScheduler::WaitsForBatch(const DecodeJob& job) const {
  return options_.batching == Batching::kStatic && !job.joined() && BatchRuns();
}

std::optional<size_t> DecodeScheduler::FewestOf(
    absl::Span<DecodeJob* const> others, const DecodeJob& job) const {
  if (!FitsWithout(job, others)) return std::nullopt;
  size_t count = 0;
  while (!FitsWithout(job, others.first(count))) ++count;
  return count;
}

void DecodeScheduler::MakeRoom(const DecodeJob& job) {
  const std::vector<DecodeJob*> victims = VictimsFor(job);
  if (const auto count = FewestOf(victims, job)) {
    for (size_t i = 0; i < *count; ++i) Preempt(*victims[i]);
  } else if (!victims.empty()) {
    // They go on until the blocks of the landings are there too.
    CloseLandingsToReturn(job);
  }
}

bool DecodeScheduler::EndStandstill(MonotonicTime now) {
  const std::vector<DecodeJob*> waiting = Waiting();
  waiting_ = static_cast<uint32_t>(waiting.size());
  if (!step_.empty() || waiting.empty()) {
    standstill_ = kNever;
    return false;
  }
  for (DecodeJob* job : waiting) {
    if (WaitsForBatch(*job)) continue;
    if (job->phase == Phase::kPreempted) CloseLandingsToReturn(*job);
    break;
  }
  standstill_ = std::min(standstill_, now + options_.block_patience);
  if (now < standstill_ || BATON_MUTANT("standstill_without_end")) return false;
  // The last that holds blocks: whoever fails without any makes no room.
  const auto holder = std::find_if(
      waiting.rbegin(), waiting.rend(),
      [this](const DecodeJob* job) { return HeldBlocks(*job) > 0; });
  if (holder == waiting.rend()) standstill_ = now + options_.block_patience;
  ++counters_.given_up;
  Close(holder == waiting.rend() ? *waiting.back() : **holder,
        absl::ResourceExhaustedError(StrCat("blocks: none came free for ",
                                            Seconds(options_.block_patience),
                                            " s")),
        true, v1::FAILURE_CAUSE_LOAD);
  return true;
}

void DecodeScheduler::CloseLandingsToReturn(const DecodeJob& job) {
  std::vector<DecodeJob*> others;
  for (auto& [id, other] : jobs_) {
    if (other.phase == Phase::kClosing) others.push_back(&other);
  }
  const std::vector<DecodeJob*> victims = VictimsFor(job);
  others.insert(others.end(), victims.begin(), victims.end());
  const size_t without_landings = others.size();
  const std::vector<DecodeJob*> landings = LandingsFor(job);
  others.insert(others.end(), landings.begin(), landings.end());
  const auto count = FewestOf(others, job);
  for (size_t i = without_landings; i < count.value_or(0); ++i) {
    CloseLanding(*others[i]);
  }
}

uint32_t DecodeScheduler::ReturnBlocks(const DecodeJob& job) const {
  const BlockDemand& demand = job.demand;
  if (!job.branched) {
    return Reserved(job) ? demand.total() : demand.context;
  }
  uint32_t blocks = demand.shared;
  for (const Branch& branch : job.branches) blocks += OwnBlocks(job, branch);
  return blocks;
}

uint32_t DecodeScheduler::OwnBlocks(const DecodeJob& job,
                                    const Branch& branch) const {
  return (Reserved(job) ? job.demand.per_choice
                        : BlocksFor(branch.sequence->length())) -
         job.demand.shared;
}

void DecodeScheduler::Return(DecodeJob& job, MonotonicTime now) {
  auto blocks = pool_.Acquire(ReturnBlocks(job), BlockUse::kRunning);
  BATON_CHECK(blocks.ok());
  if (!job.joined()) job.queue_ms = Milliseconds(now - job.ready);
  job.phase = Phase::kPrefilling;
  const BlockDemand& demand = job.demand;
  uint32_t rows = job.request.context_tokens;
  if (!job.branched) {
    if (!job.joined()) job.prefill_started = now;
    const auto growth = blocks->begin() + demand.context;
    job.context.assign(blocks->begin(), growth);
    job.context_use = BlockUse::kRunning;
    job.reserve.assign(growth, blocks->end());
    chunks_.Add(job.id, rows);
    return;
  }
  if (job.branches.size() == 1) {
    rows = static_cast<uint32_t>(job.branches[0].sequence->length() - 1);
  }
  // The others share the context's blocks when it is there again.
  auto next = blocks->begin();
  for (Branch& branch : job.branches) {
    const auto begin = next;
    if (&branch == &job.branches.front()) next += demand.shared;
    next += OwnBlocks(job, branch);
    branch.blocks.assign(begin, next);
  }
  if (BATON_MUTANT("recompute_misses_a_row") && rows > 1) --rows;
  chunks_.Add(job.id, rows);
}

void DecodeScheduler::PlanRecompute(DecodeJob& job,
                                    const ChunkPlanner::Chunk& chunk,
                                    StepPlan* plan) {
  auto add = [&](size_t branch, uint32_t first, uint32_t count) {
    PlanRows(job, branch, first, count, plan);
    step_.push_back({.job = job.id, .prefill_tokens = count});
  };
  if (!job.own_rows) {
    add(0, chunk.first, chunk.count);
  } else {
    // All copy the end of the context before the first goes on there.
    for (Branch& branch : job.branches) CopyContextEnd(job, branch, plan);
    const uint32_t context = job.request.context_tokens;
    uint32_t skip = chunk.first - context, left = chunk.count;
    for (size_t i = 0; i < job.branches.size() && left > 0; ++i) {
      const auto rows = static_cast<uint32_t>(
          job.branches[i].sequence->length() - 1 - context);
      const uint32_t skipped = std::min(skip, rows);
      const uint32_t count = std::min(rows - skipped, left);
      skip -= skipped;
      left -= count;
      if (count > 0) add(i, context + skipped, count);
    }
  }
  step_.back().prefill_ends = chunk.last;
}

void DecodeScheduler::EndRecompute(DecodeJob& job, MonotonicTime now) {
  const uint32_t context = job.request.context_tokens;
  uint32_t own = 0;
  if (job.branches.size() > 1 && !job.own_rows) {
    const std::vector<BlockRef>& first = job.branches.front().blocks;
    const auto shared_end = first.begin() + job.demand.shared;
    for (Branch& branch : job.branches) {
      own += static_cast<uint32_t>(branch.sequence->length() - 1 - context);
      if (&branch == &job.branches.front()) continue;
      BATON_CHECK(
          pool_.Hold({first.data(), job.demand.shared}, BlockUse::kRunning)
              .ok());
      branch.blocks.insert(branch.blocks.begin(), first.begin(), shared_end);
      if (job.demand.context > job.demand.shared) branch.copy_of = *shared_end;
    }
  }
  if (own > 0) {
    job.own_rows = true;
    chunks_.Add(job.id, own, context);
    return;
  }
  job.own_rows = false;
  job.phase = Phase::kDecoding;
  if (job.decode_started == MonotonicTime{}) job.decode_started = now;
  BATON_FAILPOINT("decode.recomputed");
}

}  // namespace baton::decode
