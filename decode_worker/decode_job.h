#ifndef BATON_DECODE_WORKER_DECODE_JOB_H_
#define BATON_DECODE_WORKER_DECODE_JOB_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

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

// An attempt as the decode scheduler keeps it.
//
//   OPENING -> LANDING -> READY -> DECODING -> gone
//   (served locally)      READY -> PREFILLING -> DECODING -> gone
//   (no block is free)    READY, PREFILLING, DECODING -> PREEMPTED
//                         -> PREFILLING -> DECODING, from the first row on
//   any -> CLOSING -> gone, when neither a step nor a transfer touches blocks
struct DecodeJob : AttemptJob {
  enum class Phase {
    kOpening,
    kLanding,
    kReady,
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
  bool own_rows = false;  // recomputes what the choices do not share

  std::optional<LandingId> landing;  // not over
  bool landing_failed = false;       // is over soon, by itself
  v1::Ticket ticket;                 // for a repeated request

  uint32_t credit = 0;  // prompt tokens started and not computed, ever
  uint32_t chunks = 0;  // of local prefill
  uint32_t steps = 0;   // with decode rows
  uint32_t drafted = 0, accepted = 0;  // guesses
  MonotonicTime ready, prefill_started, decode_started;
  double queue_ms = 0, prefill_ms = 0;

  bool joined() const {
    return prefill_started != MonotonicTime{} ||
           decode_started != MonotonicTime{};
  }
  // Who ranks first keeps its blocks, however many others want them.
  std::pair<uint32_t, JobId> rank() const { return {request.priority, id}; }
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_DECODE_JOB_H_
