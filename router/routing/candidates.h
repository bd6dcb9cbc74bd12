#ifndef BATON_ROUTER_ROUTING_CANDIDATES_H_
#define BATON_ROUTER_ROUTING_CANDIDATES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "router/routing/worker_view.h"

namespace baton::router {

// A place where an attempt could run now.
struct Candidate {
  const WorkerView* prefill = nullptr;  // null: the decode worker prefills
  const WorkerView* decode = nullptr;   // never null
  std::string_view reason;              // static text, for Served.reason
};

// A decode worker that had no room for this attempt.
struct Refusal {
  WorkerIndex decode;
  MonotonicTime retry_at;
  AttemptId attempt{};  // that it refused
};

struct PlacementRequest {
  uint64_t prefill_tokens = 0;  // prompt and generated tokens to compute
  uint64_t context_tokens = 0;  // the longest the sequence can become
  uint64_t kv_blocks = 0;       // at the decode worker (KvBlocksFor)
  uint64_t choices = 1;
  uint64_t least_tokens = 0;  // that an answer has at least, from here on
  bool pair = false;          // not at an `auto` decode worker alone, if short
  std::vector<WorkerIndex> avoid{};  // where earlier attempts failed
  std::vector<Refusal> refusals{};
  MonotonicTime not_before{};  // anywhere
  // Of the workers that made the tokens which the client has: no other may
  // continue them. Empty: any.
  std::string fingerprint{};
};

// Where nobody says better, an answer is taken to have so many tokens at most;
// most are far below their limit.
inline constexpr uint64_t kUsualAnswerTokens = 64;
// Per choice, wherever it runs.
uint64_t ExpectedAnswerTokens(const PlacementRequest& request);
// Blocks that it takes at this decode worker, with answers as long as usual or,
// if that is more, as the worker plans with: one that takes risks in what it
// accepts is no reason to prefer it.
uint64_t ExpectedKvBlocks(const PlacementRequest& request,
                          const WorkerView& decode);

// What the cluster as a whole can do for a request; more is better.
enum class Servability {
  kNoWorker,  // no healthy decode worker (of the fingerprint)
  // Healthy decode workers exist, none with ...
  kContextShort,  // ... enough context
  kPoolSmall,     // ... enough context and blocks, whatever is free
  kBatchSmall,    // ... all that and room for so many choices at once
  kNow,           // at least one place exists; it may have to wait for credit
};
Servability ServabilityOf(absl::Span<const WorkerView* const> workers,
                          const PlacementRequest& request);

struct PlacementRules {
  // A prefill worker is still starting: decode workers do not replace it yet.
  bool prefill_expected = false;
  // Workers that said nothing for longer get no new work; they speak at least
  // once a second, so they may be stopped.
  Duration quiet_after = Duration::max();
};

// KV of the one can reach the other: equal fingerprints, and a data transport
// that both have; who names none has any.
bool MayPair(const WorkerView& prefill, const WorkerView& decode);

// Why a ready worker is in no pair although there are workers of the other
// role, or "".
std::string WhyUnpaired(const WorkerView& worker,
                        absl::Span<const WorkerView* const> workers);

// Every pair (or decode worker alone) that may start the request now. Rules:
//  - both healthy, large enough, MayPair, and of the request's fingerprint if
//    it has one;
//  - `never` decode workers serve alone; the others are paired, and serve alone
//    when no prefill worker is ready (or expected) that they MayPair with, and
//    `auto` ones when the prompt is short and fits a step beside what the
//    worker decodes, by its own prediction;
//  - places that failed this request before only when there is no better one,
//    even if the better one has to be waited for;
//  - nowhere before its time;
//  - start credit, places in the batch, no refusal that still holds, no quiet
//    worker, and none that breaker, slow start or concurrency limit hold back.
std::vector<Candidate> CandidatesFor(
    const PlacementRequest& request,
    absl::Span<const WorkerView* const> workers, const PlacementRules& rules,
    MonotonicTime now);

// The request has several choices, and all that it lacks is places for them at
// once: others with fewer could overtake it for ever.
bool WaitsForPlaces(const PlacementRequest& request,
                    absl::Span<const WorkerView* const> workers);

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_CANDIDATES_H_
