// Part of DecodeScheduler: who gets blocks, who loses them, who gets them back.
#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "decode_worker/decode_scheduler.h"

namespace baton::decode {
namespace {

// The part of the pool that admission leaves for answers that grow longer than
// predicted.
constexpr uint32_t kReserveShare = 32;

constexpr uint32_t kForGood = std::numeric_limits<uint32_t>::max();

bool Foretold(const SequenceParams& params) {
  return params.ignore_eos && params.stop_strings.empty() &&
         params.stop_token_ids.empty();
}

}  // namespace

void DecodeScheduler::GrowTables() {
  std::vector<DecodeJob*> decoding;
  for (auto& [id, job] : jobs_) {
    job.covered = false;
    if (job.phase == Phase::kDecoding) decoding.push_back(&job);
  }
  std::sort(decoding.begin(), decoding.end(),
            [](auto* a, auto* b) { return a->rank() < b->rank(); });
  waiting_ = 0;
  for (DecodeJob* job : decoding) {
    if (job->phase == Phase::kPreempted) continue;
    const uint32_t missing = Missing(*job);
    while (pool_.ledger().free < missing) {
      DecodeJob* victim = VictimFor(*job);
      if (victim == nullptr) break;
      Preempt(*victim);
    }
    if (pool_.ledger().free < missing) {
      ++waiting_;
      continue;
    }
    job->covered = true;
    for (Branch& branch : job->branches) CoverRows(*job, branch, 1);
  }
  for (const auto& [id, job] : jobs_) {
    if (job.phase == Phase::kPreempted) ++waiting_;
  }
}

uint32_t DecodeScheduler::Missing(const DecodeJob& job) const {
  uint32_t missing = 0;
  for (const Branch& branch : job.branches) {
    const uint32_t wanted = BlocksFor(branch.sequence->length());
    const auto has = static_cast<uint32_t>(branch.blocks.size());
    if (wanted > has) missing += wanted - has;
  }
  return missing;
}

uint32_t DecodeScheduler::CoverRows(DecodeJob& job, Branch& branch,
                                    uint32_t rows) {
  const uint64_t first = branch.sequence->length() - 1;
  const size_t wanted =
      std::min(BlocksFor(first + rows), job.demand.per_choice);
  const size_t needed = BlocksFor(first + 1);
  while (branch.blocks.size() < wanted) {
    const bool spare = pool_.ledger().free > pool_.size() / kReserveShare;
    if (branch.blocks.size() >= needed && !spare) break;
    auto block = pool_.Acquire(1, BlockUse::kRunning);
    BATON_CHECK(block.ok());
    branch.blocks.push_back(block->front());
  }
  return static_cast<uint32_t>(
      std::min<uint64_t>(rows, branch.blocks.size() * kBlockTokens - first));
}

DecodeJob* DecodeScheduler::VictimFor(const DecodeJob& job) {
  DecodeJob* victim = nullptr;
  for (auto& [id, other] : jobs_) {
    const bool holds = other.phase == Phase::kReady ||
                       other.phase == Phase::kPrefilling ||
                       other.phase == Phase::kDecoding;
    if (!holds || Reserved(other)) continue;
    // Who waits for a static batch to end cannot keep it from ending.
    const bool outside =
        options_.batching == Batching::kStatic && !other.joined();
    if (!outside && other.rank() <= job.rank()) continue;
    if (victim == nullptr || victim->rank() < other.rank()) victim = &other;
  }
  return victim;
}

void DecodeScheduler::Preempt(DecodeJob& job) {
  BATON_CHECK(!job.in_step);
  ++job.preemptions;
  ++counters_.preemptions;
  counters_.most_preemptions =
      std::max(counters_.most_preemptions, job.preemptions);
  chunks_.Remove(job.id);
  job.phase = Phase::kPreempted;
  job.covered = job.own_rows = false;
  if (BATON_MUTANT("preempted_keeps_blocks")) return;
  ReleaseBlocks(job.context, &job.context_use);
  ReleaseTables(job);
  BATON_FAILPOINT("decode.preempt");
}

void DecodeScheduler::ForcePreemptions() {
  for (auto& [id, job] : jobs_) {
    if (job.phase == Phase::kDecoding && !Reserved(job) &&
        job.preemptions < std::min(options_.forced_preemptions, job.steps)) {
      Preempt(job);
    }
  }
}

void DecodeScheduler::ReturnPreempted(MonotonicTime now) {
  if (waiting_ == 0) return;
  std::vector<DecodeJob*> preempted;
  for (auto& [id, job] : jobs_) {
    if (job.phase == Phase::kPreempted) preempted.push_back(&job);
  }
  std::sort(preempted.begin(), preempted.end(),
            [](auto* a, auto* b) { return a->rank() < b->rank(); });
  for (DecodeJob* job : preempted) {
    // A static batch takes back only its own.
    if (options_.batching == Batching::kStatic && !job->joined() &&
        BatchRuns()) {
      continue;
    }
    if (ReturnBlocks(*job) > pool_.ledger().free || !Fits(*job)) return;
    Return(*job, now);
    --waiting_;
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

uint32_t DecodeScheduler::HeldBlocks(const DecodeJob& job) const {
  size_t blocks = job.reserve.size();
  if (job.context_use.has_value()) blocks += job.context.size();
  for (const Branch& branch : job.branches) {
    blocks += branch.blocks.size();
    const bool shares = &branch != &job.branches.front() &&
                        job.demand.shared > 0 && !branch.blocks.empty() &&
                        branch.blocks[0] == job.branches[0].blocks[0];
    if (shares) blocks -= job.demand.shared;
  }
  return static_cast<uint32_t>(blocks);
}

uint32_t DecodeScheduler::AllowedPeak() const {
  return pool_.size() - (pool_.size() + kReserveShare - 1) / kReserveShare;
}

bool DecodeScheduler::Fits(const DecodeJob& job) const {
  // Alone everything fits: no request needs more than the pool.
  return pool_.ledger().free == pool_.size() ||
         PredictedPeak(&job) <= AllowedPeak();
}

uint64_t DecodeScheduler::PredictedPeak(const DecodeJob* one_more) const {
  PeakDemand demand;
  for (const auto& [id, job] : jobs_) {
    if (job.phase == Phase::kClosing) {
      demand.AddHeld(HeldBlocks(job), kForGood);
    } else if (job.phase != Phase::kPreempted) {
      AddDemand(job, &demand);
    }
  }
  demand.AddHeld(static_cast<uint32_t>(probe_.size()), 1);
  if (one_more != nullptr) AddDemand(*one_more, &demand);
  return demand.Peak();
}

void DecodeScheduler::AddDemand(const DecodeJob& job,
                                PeakDemand* demand) const {
  uint32_t longest = 0;
  auto add = [&](const Sequence& choice, uint64_t rows) {
    const uint32_t steps = StepsLeft(choice, rows);
    longest = std::max(longest, steps);
    if (Reserved(job)) return;
    demand->AddChoice(static_cast<uint32_t>(rows), steps, job.demand.shared);
  };
  for (const Branch& branch : job.branches) {
    add(*branch.sequence, branch.sequence->length() - 1);
  }
  if (!job.branched) {
    for (const Sequence& choice : job.request.choices) {
      add(choice, job.request.context_tokens);
    }
  }
  demand->AddHeld(Reserved(job) ? ReturnBlocks(job) : job.demand.shared,
                  longest);
}

uint32_t DecodeScheduler::StepsLeft(const Sequence& choice,
                                    uint64_t rows) const {
  const SequenceParams& params = choice.params();
  const auto generated = static_cast<uint32_t>(choice.generated().size());
  const uint32_t predicted =
      Foretold(params)
          ? params.max_tokens
          : std::max(lengths_.Predict(generated, params.max_tokens),
                     params.min_tokens);
  // The last token's own row is not needed.
  const uint64_t last = params.prompt.size() + predicted - 1;
  return static_cast<uint32_t>(last - std::min(last, rows));
}

void DecodeScheduler::NoteLength(const Sequence& choice,
                                 const FinishCause& finish) {
  if (Foretold(choice.params())) return;
  lengths_.Add(static_cast<uint32_t>(choice.generated().size()),
               finish.kind == FinishKind::kLength);
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
