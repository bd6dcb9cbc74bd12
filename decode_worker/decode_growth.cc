// Part of DecodeScheduler: who gets blocks and who loses them.
#include <algorithm>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"
#include "decode_worker/decode_scheduler.h"

namespace baton::decode {
namespace {

// The part of the pool that guesses leave alone.
constexpr uint32_t kSpareShare = 32;

void SortLastFirst(std::vector<DecodeJob*>* jobs) {
  std::sort(jobs->begin(), jobs->end(),
            [](auto* a, auto* b) { return a->rank() > b->rank(); });
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
  uint32_t owed = 0;
  for (DecodeJob* job : decoding) {
    if (job->phase == Phase::kPreempted) continue;
    const uint32_t missing = Missing(*job);
    if (pool_.ledger().free < missing) {
      const std::vector<DecodeJob*> victims = VictimsFor(*job);
      // Nobody gives way in vain.
      uint32_t reach = pool_.ledger().free + ComingFree();
      for (const DecodeJob* victim : victims) {
        reach += victim->HeldBlocks() - victim->LeavingBlocks();
      }
      for (const DecodeJob* lands : LandingsFor(*job)) {
        reach += lands->HeldBlocks();
      }
      for (DecodeJob* victim : victims) {
        if (pool_.ledger().free >= missing || reach < missing) break;
        Preempt(*victim);
      }
    }
    if (pool_.ledger().free < missing) {
      owed += missing;
      CloseLandingsFor(*job, owed);
      continue;
    }
    job->covered = true;
    for (Branch& branch : job->branches) CoverRows(*job, branch, 1);
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
    const bool spare = pool_.ledger().free > pool_.size() / kSpareShare;
    if (branch.blocks.size() >= needed && !spare) break;
    auto block = pool_.Acquire(1, BlockUse::kRunning);
    BATON_CHECK(block.ok());
    branch.blocks.push_back(block->front());
  }
  return static_cast<uint32_t>(
      std::min<uint64_t>(rows, branch.blocks.size() * kBlockTokens - first));
}

bool DecodeScheduler::GivesWay(const DecodeJob& other,
                               const DecodeJob& job) const {
  // Who waits for a static batch to end cannot keep it from ending.
  const bool outside =
      options_.batching == Batching::kStatic && job.joined() && !other.joined();
  return outside || job.rank() < other.rank();
}

std::vector<DecodeJob*> DecodeScheduler::VictimsFor(const DecodeJob& job) {
  std::vector<DecodeJob*> victims;
  for (auto& [id, other] : jobs_) {
    const bool holds =
        other.phase == Phase::kReady || other.phase == Phase::kFetching ||
        other.phase == Phase::kPrefilling || other.phase == Phase::kDecoding;
    if (holds && !other.reserved && GivesWay(other, job)) {
      victims.push_back(&other);
    }
  }
  SortLastFirst(&victims);
  return victims;
}

std::vector<DecodeJob*> DecodeScheduler::LandingsFor(const DecodeJob& job) {
  std::vector<DecodeJob*> landings;
  for (auto& [id, other] : jobs_) {
    const bool lands =
        other.phase == Phase::kOpening || other.phase == Phase::kLanding;
    if (lands && GivesWay(other, job)) landings.push_back(&other);
  }
  SortLastFirst(&landings);
  return landings;
}

void DecodeScheduler::CloseLandingsFor(const DecodeJob& job, uint32_t blocks) {
  for (DecodeJob* landing : LandingsFor(job)) {
    if (pool_.ledger().free + ComingFree() >= blocks) return;
    CloseLanding(*landing);
  }
}

uint32_t DecodeScheduler::ComingFree() const {
  uint32_t blocks = pool_.ledger()[BlockUse::kQuarantine];
  for (const auto& [id, job] : jobs_) {
    if (job.outwaits())
      blocks -= static_cast<uint32_t>(job.fetch->blocks.size());
  }
  return blocks;
}

void DecodeScheduler::CloseLanding(DecodeJob& landing) {
  ++counters_.landings_given_up;
  standstill_ = kNever;  // its blocks come free later
  Close(landing,
        absl::ResourceExhaustedError(
            "blocks: answers that came earlier grow into this landing"),
        true, v1::FAILURE_CAUSE_LOAD);
}

void DecodeScheduler::Preempt(DecodeJob& job) {
  BATON_CHECK(!job.in_step);
  ++job.preemptions;
  job.reserved = job.preemptions >= options_.max_preemptions &&
                 !BATON_MUTANT("preemption_unbounded");
  ++counters_.preemptions;
  counters_.most_preemptions =
      std::max(counters_.most_preemptions, job.preemptions);
  chunks_.Remove(job.id);
  job.phase = Phase::kPreempted;
  job.covered = job.own_rows = false;
  if (BATON_MUTANT("preempted_keeps_blocks")) return;
  if (job.fetch.has_value()) GiveUpFetch(job);
  ReleaseBlocks(job.context, &job.context_use);
  ReleaseTables(job);
  BATON_FAILPOINT("decode.preempt");
}

void DecodeScheduler::ForcePreemptions() {
  for (auto& [id, job] : jobs_) {
    if (job.phase == Phase::kDecoding && !job.reserved &&
        job.preemptions < std::min(options_.forced_preemptions, job.steps)) {
      Preempt(job);
    }
  }
}

}  // namespace baton::decode
