#include "router/request_flow/request_flow.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"
#include "router/admission/admission_queue.h"
#include "router/routing/kv_demand.h"

namespace baton::router {
namespace {

// D has all it needs and is not done with it.
bool Decodes(const Attempt& attempt) {
  return attempt.decode_open &&
         (attempt.phase == AttemptPhase::kDecoding ||
          (attempt.phase == AttemptPhase::kPrefilling && attempt.landed));
}

}  // namespace

RequestFlow::RequestFlow(ClientRequest request, FlowLimits limits)
    : request_(std::move(request)),
      limits_(limits),
      choices_(request_.spec.choices_size()),
      account_(request_.received) {
  if (request_.best > 0) best_.emplace(request_.best, request_.tell_logprobs);
}

const Attempt* RequestFlow::Find(AttemptId id) const {
  const auto it = attempts_.find(id);
  return it == attempts_.end() ? nullptr : &it->second;
}

Work RequestFlow::FirstWork() const {
  std::vector<uint32_t> all;
  for (const v1::ChoiceSpec& choice : request_.spec.choices()) {
    all.push_back(choice.index());
  }
  return WorkFor(std::move(all));
}

void RequestFlow::Dispatch(AttemptId id, Work work, const Candidate& place,
                           std::string_view policy, MonotonicTime now,
                           Actions* out) {
  BATON_CHECK(!finished_);
  account_.Dispatched(place, policy, now);
  Attempt& attempt = attempts_[id];
  attempt.id = id;
  attempt.work = std::move(work);
  attempt.decode = place.decode->index;
  attempt.fingerprint = place.decode->hello.fingerprint();
  attempt.decode_open = true;
  attempt.last_progress = now;
  v1::DecodeCommand command;
  if (place.prefill != nullptr) {
    attempt.prefill = place.prefill->index;
    auto* reserve = command.mutable_reserve();
    reserve->set_attempt_id(id.value());
    *reserve->mutable_sequence() = SpecFor(attempt);
    reserve->set_deadline_ms(RemainingMs(now));
    reserve->set_waited_ms(WaitedMs(now));
    reserve->set_request_id(request_.id.value());
  } else {
    attempt.phase = AttemptPhase::kPrefilling;
    attempt.prefill_started = true;
    auto* serve = command.mutable_serve();
    serve->set_attempt_id(id.value());
    *serve->mutable_sequence() = SpecFor(attempt);
    serve->set_deadline_ms(RemainingMs(now));
    serve->set_waited_ms(WaitedMs(now));
    serve->set_request_id(request_.id.value());
  }
  out->push_back(SendToDecode{attempt.decode, std::move(command)});
}

void RequestFlow::OnReserved(AttemptId id, v1::Reserved reserved,
                             MonotonicTime now, Actions* out) {
  Attempt* attempt = Open(id);
  if (attempt == nullptr) return;
  if (attempt->phase != AttemptPhase::kReserving) {
    ++outcome_.stale;
    return;
  }
  attempt->phase = AttemptPhase::kPrefilling;
  attempt->prefill_open = true;
  attempt->prefill_started = true;
  attempt->last_progress = now;
  v1::PrefillCommand command;
  auto* start = command.mutable_start();
  start->set_attempt_id(id.value());
  *start->mutable_sequence() = SpecFor(*attempt);
  *start->mutable_ticket() = std::move(*reserved.mutable_ticket());
  start->set_deadline_ms(RemainingMs(now));
  out->push_back(SendToPrefill{*attempt->prefill, std::move(command)});
  BATON_FAILPOINT("router.start");
}

void RequestFlow::OnRefused(AttemptId id, MonotonicTime retry_at,
                            Actions* out) {
  Attempt* attempt = Open(id);
  if (attempt == nullptr) return;
  const bool answers_reserve = attempt->phase == AttemptPhase::kReserving;
  const bool answers_serve =
      attempt->alone() && attempt->phase == AttemptPhase::kPrefilling;
  if (!answers_reserve && !answers_serve) {
    ++outcome_.stale;
    return;
  }
  attempt->decode_open = false;
  auto& refusals = attempt->work.placement.refusals;
  std::erase_if(refusals, [&](const Refusal& refusal) {
    return refusal.decode == attempt->decode;
  });
  refusals.push_back({attempt->decode, retry_at, id});
  outcome_.pending.push_back(Close(id, out).work);
}

void RequestFlow::OnFirstTokens(AttemptId id, v1::FirstTokens first,
                                MonotonicTime now, Actions* out) {
  Attempt* attempt = Open(id);
  if (attempt == nullptr) return;
  if (attempt->alone() || attempt->first_tokens || !attempt->prefill_started) {
    ++outcome_.stale;
    return;
  }
  attempt->first_tokens = true;
  attempt->phase =
      attempt->landed ? AttemptPhase::kDecoding : AttemptPhase::kTransferring;
  attempt->last_progress = now;
  account_.FirstTokens(first);
  BATON_FAILPOINT("router.first_tokens");
  std::vector<uint32_t> seen;
  for (v1::TokenDelta& delta : *first.mutable_tokens()) {
    v1::TokenDelta* one[] = {&delta};
    if (!Deliver(id, one, now, out)) return;
    seen.push_back(delta.choice());
  }
  for (uint32_t choice : attempt->work.choices) {
    if (std::find(seen.begin(), seen.end(), choice) == seen.end()) {
      FailNonsense(id, "prefill left out a choice", out);
      return;
    }
  }
  if (AllFinished(*attempt)) {
    attempt->prefill_open = false;
    account_.EndedAtFirstToken();
    Close(id, out);
    CompleteIfDone(out);
    return;
  }
  std::vector<v1::TokenDelta> early = std::exchange(attempt->early, {});
  for (v1::TokenDelta& delta : early) {
    v1::TokenDelta* one[] = {&delta};
    if (!Deliver(id, one, now, out)) return;
  }
  AfterTokens(id, out);
}

void RequestFlow::OnHandedOver(AttemptId id) {
  const auto it = attempts_.find(id);
  if (it != attempts_.end()) it->second.prefill_open = false;
}

void RequestFlow::OnLandingProgress(AttemptId id, MonotonicTime now) {
  Attempt* attempt = Open(id);
  if (attempt == nullptr) return;
  if (attempt->alone() || !attempt->prefill_started) {
    ++outcome_.stale;
    return;
  }
  attempt->last_progress = now;
}

void RequestFlow::OnLanded(AttemptId id, const v1::Landed& landed,
                           MonotonicTime now) {
  Attempt* attempt = Open(id);
  if (attempt == nullptr) return;
  if (attempt->alone() || attempt->landed || !attempt->prefill_started) {
    ++outcome_.stale;
    return;
  }
  attempt->landed = true;
  attempt->prefill_open = false;
  attempt->last_progress = now;
  if (attempt->phase == AttemptPhase::kTransferring) {
    attempt->phase = AttemptPhase::kDecoding;
  }
  account_.Landed(landed, now);
}

void RequestFlow::OnTokens(AttemptId id,
                           absl::Span<v1::TokenDelta* const> tokens,
                           MonotonicTime now, Actions* out) {
  Attempt* attempt = Open(id);
  if (attempt == nullptr) return;
  if (!attempt->prefill_started) {
    FailNonsense(id, "tokens before the prefill was started", out);
    return;
  }
  attempt->last_progress = now;
  if (attempt->alone() || attempt->first_tokens) {
    if (attempt->alone()) attempt->phase = AttemptPhase::kDecoding;
    if (Deliver(id, tokens, now, out)) AfterTokens(id, out);
    return;
  }
  const size_t most = attempt->work.choices.size() *
                      static_cast<size_t>(request_.spec.max_tokens());
  if (attempt->early.size() + tokens.size() > most) {
    FailNonsense(id, "more tokens than asked for", out);
    return;
  }
  for (v1::TokenDelta* delta : tokens) {
    attempt->early.push_back(std::move(*delta));
  }
}

void RequestFlow::OnDone(AttemptId id, const v1::AttemptDone& done,
                         MonotonicTime now, Actions* out) {
  Attempt* attempt = Open(id);
  if (attempt == nullptr) return;
  attempt->decode_done = true;
  attempt->decode_open = false;
  attempt->last_progress = now;
  account_.Done(done);
  if (attempt->alone() || attempt->first_tokens) AfterTokens(id, out);
}

void RequestFlow::OnPushWanted(AttemptId id, v1::PushWanted wanted,
                               bool prefill_up, MonotonicTime now,
                               Actions* out) {
  Attempt* attempt = Open(id);
  if (attempt == nullptr) return;
  const LandingId landing(wanted.ticket().landing_id());
  if (!Decodes(*attempt) || attempt->push == landing) {
    ++outcome_.stale;
    return;
  }
  attempt->last_progress = now;
  if (attempt->alone() || !prefill_up) {
    RefusePush(*attempt, landing, "no prefill worker to ask", out);
    return;
  }
  attempt->push = landing;
  v1::PrefillCommand command;
  v1::PushPrefix& push = *command.mutable_push();
  push.set_attempt_id(id.value());
  *push.mutable_ticket() = std::move(*wanted.mutable_ticket());
  push.set_prefix_hash(std::move(*wanted.mutable_prefix_hash()));
  push.set_deadline_ms(wanted.deadline_ms());
  out->push_back(SendToPrefill{*attempt->prefill, std::move(command)});
}

void RequestFlow::OnPushRefused(AttemptId id, v1::PushRefused refused,
                                Actions* out) {
  Attempt* attempt = Open(id);
  if (attempt == nullptr) return;
  const LandingId landing(refused.landing_id());
  if (!Decodes(*attempt) || attempt->push != landing) {
    ++outcome_.stale;
    return;
  }
  attempt->push.reset();
  v1::DecodeCommand command;
  *command.mutable_push_refused() = std::move(refused);
  out->push_back(SendToDecode{attempt->decode, std::move(command)});
}

void RequestFlow::RefusePush(const Attempt& attempt, LandingId landing,
                             std::string_view why, Actions* out) {
  v1::DecodeCommand command;
  v1::PushRefused& refused = *command.mutable_push_refused();
  refused.set_attempt_id(attempt.id.value());
  refused.set_landing_id(landing.value());
  refused.set_reason(std::string(why));
  out->push_back(SendToDecode{attempt.decode, std::move(command)});
}

void RequestFlow::OnFailed(AttemptId id, WorkerIndex worker,
                           const absl::Status& status, bool retryable,
                           Actions* out) {
  if (EndedAt(id, worker) != nullptr) Fail(id, status, retryable, out);
}

void RequestFlow::OnGivenUp(AttemptId id, WorkerIndex worker,
                            MonotonicTime retry_at, Actions* out) {
  if (EndedAt(id, worker) == nullptr) return;
  const Attempt attempt = Close(id, out);
  BATON_FAILPOINT("router.attempt_given_up");
  if (AllFinished(attempt)) {
    CompleteIfDone(out);
    return;
  }
  ++outcome_.returned;
  for (Work& work : Rest(attempt)) {
    work.placement.avoid = attempt.work.placement.avoid;
    work.placement.not_before = retry_at;
    work.started = true;
    work.returns = attempt.work.returns + 1;
    outcome_.pending.push_back(std::move(work));
  }
}

void RequestFlow::OnStalled(AttemptId id, Actions* out) {
  if (Open(id) == nullptr) return;
  Fail(id, absl::UnavailableError("no progress"), true, out);
}

void RequestFlow::OnSessionDown(WorkerIndex worker, const std::string& why,
                                Actions* out) {
  std::vector<AttemptId> lost;
  for (auto& [id, attempt] : attempts_) {
    if (attempt.decode == worker) {
      attempt.decode_open = false;
      lost.push_back(id);
    } else if (attempt.prefill == worker) {
      attempt.prefill_open = false;
      if (!attempt.landed || !attempt.first_tokens) {
        lost.push_back(id);
      } else if (attempt.push.has_value() && Decodes(attempt)) {
        RefusePush(attempt, *std::exchange(attempt.push, std::nullopt), why,
                   out);
      }
    }
  }
  for (AttemptId id : lost) {
    if (finished_) return;
    if (attempts_.at(id).prefill_started) {
      Fail(id, absl::UnavailableError(why), true, out);
    } else {
      Requeue(Close(id, out), /*replay=*/false);
    }
  }
}

void RequestFlow::End(absl::Status status, Actions* out) {
  BATON_CHECK(!finished_ && !status.ok());
  while (!attempts_.empty()) Close(attempts_.begin()->first, out);
  outcome_.pending.clear();
  if (AllFinished()) {
    CompleteIfDone(out);
    return;
  }
  if (const uint64_t delivered = generated(); delivered > 0) {
    absl::Status longer(
        status.code(),
        StrCat(ToStd(status.message()), " (after ", delivered, " tokens)"));
    status.ForEachPayload(
        [&](absl::string_view url, const absl::Cord& payload) {
          longer.SetPayload(url, payload);
        });
    status = std::move(longer);
  }
  Finish(std::move(status), out);
}

uint64_t RequestFlow::generated() const {
  uint64_t tokens = 0;
  for (const Choice& choice : choices_) tokens += choice.tokens.size();
  return tokens;
}

FlowOutcome RequestFlow::Take() { return std::exchange(outcome_, {}); }

Attempt* RequestFlow::Open(AttemptId id) {
  BATON_CHECK(!finished_);
  const auto it = attempts_.find(id);
  if (it != attempts_.end()) return &it->second;
  ++outcome_.stale;
  return nullptr;
}

Attempt* RequestFlow::EndedAt(AttemptId id, WorkerIndex worker) {
  Attempt* attempt = Open(id);
  if (attempt == nullptr) return nullptr;
  if (attempt->decode == worker) {
    attempt->decode_open = false;
    return attempt;
  }
  attempt->prefill_open = false;
  return attempt->landed && attempt->first_tokens ? nullptr : attempt;
}

bool RequestFlow::AllFinished(const Attempt& attempt) const {
  return std::all_of(attempt.work.choices.begin(), attempt.work.choices.end(),
                     [&](uint32_t i) { return choices_[i].finished; });
}

uint32_t RequestFlow::ChoicesAtDecode(AttemptId id) const {
  const Attempt& attempt = attempts_.at(id);
  const auto& choices = attempt.work.choices;
  // What P has ended, D learns with the KV.
  if (!attempt.alone() && !attempt.landed) {
    return static_cast<uint32_t>(choices.size());
  }
  return static_cast<uint32_t>(
      std::count_if(choices.begin(), choices.end(),
                    [&](uint32_t i) { return !choices_[i].finished; }));
}

bool RequestFlow::AllFinished() const {
  return std::all_of(choices_.begin(), choices_.end(),
                     [](const Choice& choice) { return choice.finished; });
}

Work RequestFlow::WorkFor(std::vector<uint32_t> choices) const {
  Work work;
  const uint64_t prompt = request_.spec.prompt_token_ids_size();
  work.placement.prefill_tokens = prompt;
  work.placement.context_tokens = prompt + request_.spec.max_tokens();
  for (uint32_t choice : choices) {
    work.placement.prefill_tokens += choices_[choice].tokens.size();
  }
  work.placement.fingerprint = fingerprint_;
  work.placement.choices = choices.size();
  work.placement.kv_blocks =
      KvBlocksFor(prompt, work.placement.prefill_tokens,
                  request_.spec.max_tokens(), choices.size());
  work.placement.least_tokens = LeastTokens(choices);
  work.choices = std::move(choices);
  return work;
}

uint64_t RequestFlow::LeastTokens(const std::vector<uint32_t>& choices) const {
  const v1::SequenceSpec& spec = request_.spec;
  const bool to_the_end = spec.ignore_eos() && spec.stop_strings().empty() &&
                          spec.stop_token_ids().empty();
  const uint64_t least = to_the_end ? spec.max_tokens() : spec.min_tokens();
  uint64_t generated = 0;
  for (uint32_t choice : choices) {
    generated = std::max<uint64_t>(generated, choices_[choice].tokens.size());
  }
  return least - std::min(least, generated);
}

v1::SequenceSpec RequestFlow::SpecFor(const Attempt& attempt) const {
  v1::SequenceSpec spec = request_.spec;
  spec.set_priority(static_cast<uint32_t>(
      std::clamp(request_.priority, 0, kPriorityBands - 1)));
  spec.set_prefix_salt(request_.cache_salt);
  spec.clear_choices();
  for (uint32_t index : attempt.work.choices) {
    v1::ChoiceSpec* choice = spec.add_choices();
    choice->set_index(index);
    if (BATON_MUTANT("duplicate_token_index")) continue;
    choice->mutable_generated_token_ids()->Add(choices_[index].tokens.begin(),
                                               choices_[index].tokens.end());
  }
  return spec;
}

uint32_t RequestFlow::WaitedMs(MonotonicTime now) const {
  return static_cast<uint32_t>(
      std::clamp<double>(Milliseconds(now - request_.received), 0,
                         std::numeric_limits<uint32_t>::max()));
}

uint32_t RequestFlow::RemainingMs(MonotonicTime now) const {
  const double ms = Milliseconds(request_.deadline - now) + 1;
  return static_cast<uint32_t>(
      std::clamp<double>(ms, 1, std::numeric_limits<uint32_t>::max()));
}

}  // namespace baton::router
