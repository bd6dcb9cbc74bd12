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
    const bool waits = job.phase == Phase::kPreempted ||
                       (job.phase == Phase::kDecoding && !job.covered) ||
                       (job.phase == Phase::kFetching && !job.fetching());
    if (waits) waiting.push_back(&job);
  }
  std::sort(waiting.begin(), waiting.end(),
            [](auto* a, auto* b) { return a->rank() < b->rank(); });
  return waiting;
}

void DecodeScheduler::ReturnPreempted(MonotonicTime now) {
  for (DecodeJob* job : Waiting()) {
    // What comes free is for whoever ranks first.
    if (job->phase == Phase::kDecoding) return;
    if (job->phase == Phase::kFetching || WaitsForBatch(*job)) continue;
    if (!FitsWithout(*job, {})) MakeRoomFor(*job);
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

void DecodeScheduler::MakeRoomFor(const DecodeJob& job) {
  const std::vector<DecodeJob*> victims = VictimsFor(job);
  if (victims.empty()) return;
  std::vector<DecodeJob*> others = Leaving();
  const size_t leaving = others.size();
  others.insert(others.end(), victims.begin(), victims.end());
  const auto count = FewestOf(others, job);
  if (!count.has_value()) {
    CloseLandingsToReturn(job);
    return;
  }
  const size_t needed = *count - std::min(*count, leaving);
  // They go on until what comes by itself, and of landings, is there too.
  if (!FitsWithout(job, absl::MakeSpan(victims).first(needed))) return;
  for (size_t i = 0; i < needed; ++i) Preempt(*victims[i]);
}

bool DecodeScheduler::EndStandstill(MonotonicTime now) {
  const std::vector<DecodeJob*> waiting = Waiting();
  waiting_ = static_cast<uint32_t>(waiting.size());
  // A push comes, or is given up, in time.
  if (!step_.empty() || waiting.empty() || fetching() > 0) {
    standstill_ = kNever;
    return false;
  }
  for (DecodeJob* job : waiting) {
    if (job->phase == Phase::kFetching || WaitsForBatch(*job)) continue;
    if (job->phase == Phase::kPreempted) CloseLandingsToReturn(*job);
    break;
  }
  standstill_ = std::min(standstill_, now + options_.block_patience);
  if (now < standstill_ || BATON_MUTANT("standstill_without_end")) return false;
  // The last that holds blocks: whoever fails without any, or with those alone
  // that its transfer keeps, makes no room.
  const auto holder =
      std::find_if(waiting.rbegin(), waiting.rend(), [](const DecodeJob* job) {
        return job->HeldBlocks() > job->LeavingBlocks();
      });
  // One at a time where that makes no room, or not the room that is wanted.
  const bool helps =
      holder != waiting.rend() &&
      std::none_of(waiting.begin(), waiting.end(), [](const DecodeJob* job) {
        return job->phase == Phase::kFetching;
      });
  if (!helps) standstill_ = now + options_.block_patience;
  ++counters_.given_up;
  Close(holder == waiting.rend() ? *waiting.back() : **holder,
        absl::ResourceExhaustedError(StrCat("blocks: none came free for ",
                                            Seconds(options_.block_patience),
                                            " s")),
        true, v1::FAILURE_CAUSE_LOAD);
  return true;
}

std::vector<DecodeJob*> DecodeScheduler::Leaving() {
  std::vector<DecodeJob*> leaving;
  for (auto& [id, job] : jobs_) {
    const bool leaves =
        job.phase == Phase::kClosing ||
        (job.phase == Phase::kPreempted && job.fetch.has_value());
    if (leaves) leaving.push_back(&job);
  }
  return leaving;
}

void DecodeScheduler::CloseLandingsToReturn(const DecodeJob& job) {
  std::vector<DecodeJob*> others = Leaving();
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

void DecodeScheduler::Return(DecodeJob& job, MonotonicTime now) {
  const uint32_t wanted = job.ReturnBlocks();
  if (!job.joined()) job.queue_ms = Milliseconds(now - job.ready);
  if (Fetches(job, now)) {
    auto own = pool_.Acquire(wanted - job.demand.shared, BlockUse::kRunning);
    auto pushed = pool_.Acquire(job.demand.shared, BlockUse::kLanding);
    BATON_CHECK(own.ok() && pushed.ok());
    job.TakeOwnBlocks(*own);
    Fetch(job, *std::move(pushed), now);
    return;
  }
  auto blocks = pool_.Acquire(wanted, BlockUse::kRunning);
  BATON_CHECK(blocks.ok());
  ++counters_.recomputed_returns;
  if (!job.branched) {
    job.phase = Phase::kPrefilling;
    if (!job.joined()) job.prefill_started = now;
    const auto growth = blocks->begin() + job.demand.context;
    job.context.assign(blocks->begin(), growth);
    job.context_use = BlockUse::kRunning;
    job.reserve.assign(growth, blocks->end());
    chunks_.Add(job.id, job.request.context_tokens);
    return;
  }
  const absl::Span<const BlockRef> all(*blocks);
  job.TakeOwnBlocks(all.subspan(job.demand.shared));
  job.TakeSharedBlocks(all.first(job.demand.shared));
  Recompute(job, 0, now);
}

void DecodeScheduler::Recompute(DecodeJob& job, uint32_t first,
                                MonotonicTime now) {
  job.phase = Phase::kPrefilling;
  uint32_t end = job.request.context_tokens;
  if (job.branches.size() == 1) {
    end = static_cast<uint32_t>(job.branches[0].sequence->length() - 1);
  }
  if (BATON_MUTANT("recompute_misses_a_row") && end > 1) --end;
  if (end > first) {
    chunks_.Add(job.id, end - first, first);
  } else {
    EndRecompute(job, now);
  }
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
