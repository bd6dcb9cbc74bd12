#include "router/routing/candidates.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"
#include "common/tokens/token.h"
#include "router/routing/kv_demand.h"

namespace baton::router {
namespace {

constexpr std::string_view kPair = "prefill and decode apart";
constexpr std::string_view kAggregated = "aggregated worker";
constexpr std::string_view kShortPrompt = "short prompt";
constexpr std::string_view kNoPrefillWorker = "no prefill worker";
constexpr std::string_view kNoTransport =
    "no prefill worker with a common transport";

bool Suits(const WorkerView& worker, std::string_view fingerprint) {
  return fingerprint.empty() || worker.hello.fingerprint() == fingerprint ||
         BATON_MUTANT("replay_crosses_fingerprints");
}

// How far the request gets with this decode worker, however long it waits.
Servability ServabilityAt(const WorkerView& decode,
                          const PlacementRequest& request) {
  const v1::WorkerHello& hello = decode.hello;
  if (!decode.healthy() || !Suits(decode, request.fingerprint)) {
    return Servability::kNoWorker;
  }
  if (hello.max_context_tokens() < request.context_tokens) {
    return Servability::kContextShort;
  }
  if (hello.kv_blocks() < request.kv_blocks) return Servability::kPoolSmall;
  if (hello.max_sequences() < request.choices) return Servability::kBatchSmall;
  return Servability::kNow;
}

bool CommonTransport(const WorkerView& a, const WorkerView& b) {
  const auto& other = b.hello.transports();
  if (other.empty() || a.hello.transports().empty()) return true;
  return std::any_of(a.hello.transports().begin(), a.hello.transports().end(),
                     [&](const std::string& name) {
                       return std::find(other.begin(), other.end(), name) !=
                              other.end();
                     });
}

bool CanPrefill(const WorkerView& worker, const PlacementRequest& request) {
  return worker.role == v1::WORKER_ROLE_PREFILL && worker.healthy() &&
         worker.hello.max_context_tokens() >= request.prefill_tokens &&
         worker.hello.kv_blocks() >= BlocksFor(request.prefill_tokens);
}

bool Avoided(const PlacementRequest& request, WorkerIndex worker) {
  return std::find(request.avoid.begin(), request.avoid.end(), worker) !=
         request.avoid.end();
}

// Of a choice that is taken to have `usual` ones.
uint64_t AnswerTokens(const PlacementRequest& request, uint64_t usual) {
  const uint64_t left =
      request.context_tokens -
      std::min(request.context_tokens, request.prefill_tokens);
  return std::min(left, std::max(usual, request.least_tokens));
}

int Penalty(const PlacementRequest& request, const Candidate& candidate) {
  int penalty = Avoided(request, candidate.decode->index) ? 1 : 0;
  if (candidate.prefill != nullptr &&
      Avoided(request, candidate.prefill->index)) {
    ++penalty;
  }
  return penalty;
}

bool RefusedUntilLater(const PlacementRequest& request, WorkerIndex decode,
                       MonotonicTime now) {
  return std::any_of(request.refusals.begin(), request.refusals.end(),
                     [&](const Refusal& refusal) {
                       return refusal.decode == decode &&
                              refusal.retry_at > now;
                     });
}

// As far as this router knows; refused there, the work would have to wait while
// others take the next place.
bool HasPlaces(const WorkerView& decode, const PlacementRequest& request) {
  return decode.outstanding_choices == 0 ||
         decode.outstanding_choices + request.choices <= decode.SequenceLimit();
}

// Its KV is cheaper made where it is needed than sent there: it fits a step
// beside the decode rows.
bool CheapAt(const WorkerView& decode, const PlacementRequest& request) {
  const uint32_t step = decode.load.step_prompt_tokens();
  return request.prefill_tokens <= decode.hello.local_prefill_max_tokens() &&
         (step == 0 || request.prefill_tokens <= step);
}

bool CanStartNow(const PlacementRequest& request, const Candidate& candidate,
                 const PlacementRules& rules, MonotonicTime now) {
  const WorkerView& computing =
      candidate.prefill != nullptr ? *candidate.prefill : *candidate.decode;
  return computing.has_credit(request.prefill_tokens) &&
         computing.Admits(now) && candidate.decode->Admits(now) &&
         HasPlaces(*candidate.decode, request) &&
         now - computing.last_event <= rules.quiet_after &&
         now - candidate.decode->last_event <= rules.quiet_after &&
         !RefusedUntilLater(request, candidate.decode->index, now);
}

void AddPlacesOf(const WorkerView& decode, const PlacementRequest& request,
                 absl::Span<const WorkerView* const> workers,
                 bool prefill_expected, std::vector<Candidate>* places) {
  const v1::WorkerHello& hello = decode.hello;
  if (hello.disaggregation() == v1::DISAGGREGATION_NEVER) {
    places->push_back({nullptr, &decode, kAggregated});
    return;
  }
  if (hello.disaggregation() == v1::DISAGGREGATION_AUTO && !request.pair &&
      CheapAt(decode, request)) {
    places->push_back({nullptr, &decode, kShortPrompt});
    return;
  }
  const size_t before = places->size();
  bool unreachable = false;
  for (const WorkerView* worker : workers) {
    if (!CanPrefill(*worker, request)) continue;
    if (MayPair(*worker, decode)) {
      places->push_back({worker, &decode, kPair});
    } else {
      unreachable |= !CommonTransport(*worker, decode);
    }
  }
  if (places->size() == before && !prefill_expected) {
    places->push_back(
        {nullptr, &decode, unreachable ? kNoTransport : kNoPrefillWorker});
  }
}

}  // namespace

uint64_t ExpectedAnswerTokens(const PlacementRequest& request) {
  return AnswerTokens(request, kUsualAnswerTokens);
}

uint64_t ExpectedKvBlocks(const PlacementRequest& request,
                          const WorkerView& decode) {
  const uint64_t answer = AnswerTokens(
      request, std::max<uint64_t>(decode.load.expected_answer_tokens(),
                                  kUsualAnswerTokens));
  return KvBlocksFor(request.prefill_tokens, request.prefill_tokens,
                     std::max<uint64_t>(answer, 1),
                     std::max<uint64_t>(request.choices, 1));
}

bool MayPair(const WorkerView& prefill, const WorkerView& decode) {
  return prefill.hello.fingerprint() == decode.hello.fingerprint() &&
         CommonTransport(prefill, decode);
}

std::string WhyUnpaired(const WorkerView& worker,
                        absl::Span<const WorkerView* const> workers) {
  bool fingerprint = false, others = false;
  for (const WorkerView* other : workers) {
    if (other->role == worker.role || !other->session_up()) continue;
    if (other->hello.fingerprint() != worker.hello.fingerprint()) {
      fingerprint = true;
    } else if (!CommonTransport(worker, *other)) {
      others = true;
    } else {
      return "";
    }
  }
  const std::string_view role =
      worker.role == v1::WORKER_ROLE_PREFILL ? "decode" : "prefill";
  if (others) {
    return StrCat("no ", role, " worker has a data transport of this one (",
                  absl::StrJoin(worker.hello.transports(), ", "), ")");
  }
  if (fingerprint) return StrCat("no ", role, " worker of its fingerprint");
  return "";
}

Servability ServabilityOf(absl::Span<const WorkerView* const> workers,
                          const PlacementRequest& request) {
  Servability best = Servability::kNoWorker;
  for (const WorkerView* worker : workers) {
    if (worker->role != v1::WORKER_ROLE_DECODE) continue;
    best = std::max(best, ServabilityAt(*worker, request));
  }
  return best;
}

bool WaitsForPlaces(const PlacementRequest& request,
                    absl::Span<const WorkerView* const> workers) {
  if (request.choices <= 1) return false;
  bool full = false;
  for (const WorkerView* worker : workers) {
    if (worker->role != v1::WORKER_ROLE_DECODE ||
        ServabilityAt(*worker, request) != Servability::kNow) {
      continue;
    }
    if (HasPlaces(*worker, request)) return false;
    full = true;
  }
  return full;
}

std::vector<Candidate> CandidatesFor(
    const PlacementRequest& request,
    absl::Span<const WorkerView* const> workers, const PlacementRules& rules,
    MonotonicTime now) {
  std::vector<Candidate> places;
  if (now < request.not_before) return places;
  for (const WorkerView* worker : workers) {
    if (worker->role == v1::WORKER_ROLE_DECODE &&
        ServabilityAt(*worker, request) == Servability::kNow) {
      AddPlacesOf(*worker, request, workers, rules.prefill_expected, &places);
    }
  }
  int best = 2;
  for (const Candidate& place : places) {
    best = std::min(best, Penalty(request, place));
  }
  std::erase_if(places, [&](const Candidate& place) {
    return Penalty(request, place) > best ||
           !CanStartNow(request, place, rules, now);
  });
  return places;
}

}  // namespace baton::router
