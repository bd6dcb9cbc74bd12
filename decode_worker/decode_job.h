#ifndef BATON_DECODE_WORKER_DECODE_JOB_H_
#define BATON_DECODE_WORKER_DECODE_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/kv_cache/block_pool.h"
#include "common/worker/attempt_table.h"
#include "decode_worker/block_demand.h"
#include "decode_worker/speculation/speculator.h"
#include "proto/cluster.pb.h"

namespace baton::decode {

// One choice of an attempt once its first token is known.
struct Branch {
  Sequence* sequence = nullptr;     // owned by the job's request
  std::vector<BlockRef> blocks;     // one kRunning hold each; none: preempted
  std::optional<BlockRef> copy_of;  // partial block to copy before first use
};

// The shared blocks of a preempted attempt on their way back from a holder.
// They are held until the transfer is over, whatever becomes of the attempt.
struct ContextFetch {
  std::vector<BlockRef> blocks;      // kLanding, or kQuarantine if given up
  bool given_up = false;             // and cancelled, or failed by itself
  bool failed = false;               // is over soon, by itself
  std::optional<LandingId> landing;  // none: it is being opened
  MonotonicTime asked, deadline;
};

// What one span of the step in flight belongs to.
struct StepRow {
  JobId job;
  size_t branch = 0;  // when prefill_tokens == 0
  uint32_t prefill_tokens = 0;
  bool prefill_ends = false;
  uint32_t drafts = 0;  // at most
};

// An attempt as the decode scheduler keeps it.
//
//   OPENING -> LANDING -> READY -> DECODING -> gone
//   (served locally)      READY -> PREFILLING -> DECODING -> gone
//   (no block is free)    READY, FETCHING, PREFILLING, DECODING -> PREEMPTED
//                         -> PREFILLING -> DECODING, from the first row on, or
//                         -> FETCHING -> PREFILLING -> DECODING, from the rows
//                         on that a holder did not push
//   any -> CLOSING -> gone, when neither a step nor a transfer touches blocks
struct DecodeJob : AttemptJob {
  enum class Phase {
    kOpening,
    kLanding,
    kReady,
    kFetching,
    kPrefilling,
    kDecoding,
    kPreempted,
    kClosing
  };

  BlockDemand demand;
  bool local = false;
  Phase phase = Phase::kReady;

  // Blocks of the context, each with one hold of the given use; no use: given
  // back, or handed to the branches.
  std::vector<BlockRef> context;
  std::optional<BlockUse> context_use;
  std::vector<BlockRef> reserve;  // kRunning, for growth; see Preempt
  std::vector<Branch> branches;   // choices not ended
  std::vector<std::unique_ptr<Speculator>> speculators;  // by choice, or empty
  bool branched = false;
  bool in_step = false;
  bool covered = false;  // has the blocks of its next rows
  uint32_t preemptions = 0;
  // Nothing is taken from it any more: it has all it can need, once it is back.
  bool reserved = false;
  bool own_rows = false;  // recomputes what the choices do not share

  std::optional<LandingId> landing;   // not over
  bool landing_failed = false;        // is over soon, by itself
  v1::Ticket ticket;                  // for a repeated request
  std::optional<ContextFetch> fetch;  // not over
  bool context_gone = false;          // nobody holds it: is not asked again

  uint32_t credit = 0;  // prompt tokens started and not computed, ever
  uint32_t chunks = 0;  // of local prefill
  uint32_t steps = 0;   // with decode rows
  uint32_t drafted = 0, accepted = 0;  // guesses
  MonotonicTime ready, prefill_started, decode_started;
  double queue_ms = 0, prefill_ms = 0;

  // It waits for the end of a transfer that it gave up, to use its blocks.
  bool outwaits() const { return phase == Phase::kFetching && fetch->given_up; }
  // It waits for blocks that may still come.
  bool fetching() const {
    return phase == Phase::kFetching && !fetch->given_up;
  }
  bool joined() const {
    return prefill_started != MonotonicTime{} ||
           decode_started != MonotonicTime{};
  }
  // Who ranks first keeps its blocks, however many others want them.
  std::pair<uint32_t, JobId> rank() const { return {request.priority, id}; }

  uint32_t HeldBlocks() const;
  // Of those, given up by it: free once the old transfer is over.
  uint32_t LeavingBlocks() const;
  // To be taken when it comes back: in all, and a branch besides the shared.
  uint32_t ReturnBlocks() const;
  uint32_t OwnBlocks(const Branch& branch) const;
  // Of a branched one: for all branches, ReturnBlocks() in all. The shared ones
  // are the first's until the context is there again.
  void TakeOwnBlocks(absl::Span<const BlockRef> blocks);
  void TakeSharedBlocks(absl::Span<const BlockRef> blocks);
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_DECODE_JOB_H_
