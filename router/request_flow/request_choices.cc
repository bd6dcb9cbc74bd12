// Part of RequestFlow: what an attempt's tokens and its end mean for the
// choices it serves.
#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"
#include "router/request_flow/request_flow.h"

namespace baton::router {
namespace {

void AddTo(std::vector<WorkerIndex>* workers, WorkerIndex worker) {
  if (std::find(workers->begin(), workers->end(), worker) == workers->end()) {
    workers->push_back(worker);
  }
}

}  // namespace

RequestFlow::Appended RequestFlow::Append(const Attempt& attempt,
                                          v1::TokenDelta* delta,
                                          v1::GenerateEvent* event) {
  const auto& mine = attempt.work.choices;
  if (std::find(mine.begin(), mine.end(), delta->choice()) == mine.end()) {
    return Appended::kWrong;
  }
  Choice& choice = choices_[delta->choice()];
  if (delta->index() < choice.tokens.size() &&
      !BATON_MUTANT("duplicate_token_index")) {
    return Appended::kDuplicate;
  }
  if (choice.finished || delta->index() > choice.tokens.size() ||
      delta->token_id() >= limits_.vocabulary_size) {
    return Appended::kWrong;
  }
  choice.tokens.push_back(delta->token_id());
  ++outcome_.generated;
  event->set_choice(delta->choice());
  event->mutable_text()->append(delta->text());
  event->add_token_ids(delta->token_id());
  if (request_.spec.sampling().logprobs()) {
    v1::TokenLogprobs* logprobs = event->add_logprobs();
    logprobs->set_token_id(delta->token_id());
    logprobs->set_logprob(delta->logprob());
    logprobs->mutable_top()->Swap(delta->mutable_top_logprobs());
  }
  if (delta->has_finish()) {
    choice.finished = true;
    event->mutable_finish()->Swap(delta->mutable_finish());
  } else if (choice.tokens.size() >= request_.spec.max_tokens()) {
    choice.finished = true;
    event->mutable_finish()->set_reason(v1::FINISH_REASON_LENGTH);
  }
  return Appended::kNew;
}

bool RequestFlow::Deliver(AttemptId id,
                          absl::Span<v1::TokenDelta* const> tokens,
                          MonotonicTime now, Actions* out) {
  const Attempt& attempt = attempts_.at(id);
  v1::GenerateEvent event;
  bool wrong = false;
  for (v1::TokenDelta* delta : tokens) {
    const Appended appended = Append(attempt, delta, &event);
    wrong = appended == Appended::kWrong;
    if (wrong) break;
    if (appended == Appended::kDuplicate) ++outcome_.stale;
  }
  if (event.token_ids_size() > 0) {
    account_.Token(attempt.alone(), now);
    fingerprint_ = attempt.fingerprint;
    if (best_.has_value()) {
      out->push_back(HeldBack{request_.id, event.choice(),
                              static_cast<uint32_t>(event.token_ids_size()),
                              !event.text().empty(), event.has_finish()});
      best_->Add(std::move(event));
    } else {
      out->push_back(EmitToClient{request_.id, std::move(event)});
    }
  }
  if (!wrong) return true;
  FailNonsense(id, "token out of order or out of range", out);
  return false;
}

void RequestFlow::AfterTokens(AttemptId id, Actions* out) {
  Attempt& attempt = attempts_.at(id);
  if (AllFinished(attempt)) {
    if (!attempt.decode_done) {
      attempt.phase = AttemptPhase::kClosing;
      return;
    }
    Close(id, out);
    CompleteIfDone(out);
  } else if (attempt.decode_done) {
    FailNonsense(id, "attempt ended before its choices", out);
  }
}

void RequestFlow::Fail(AttemptId id, const absl::Status& status, bool retryable,
                       Actions* out) {
  const Attempt attempt = Close(id, out);
  BATON_FAILPOINT("router.attempt_failed");
  if (AllFinished(attempt)) {
    CompleteIfDone(out);
    return;
  }
  if (!retryable) {
    End(status, out);
    return;
  }
  for (uint32_t index : attempt.work.choices) {
    Choice& choice = choices_[index];
    if (!choice.finished && ++choice.replays > limits_.max_replays) {
      End(absl::UnavailableError(
              StrCat("attempt: failed ", choice.replays,
                     " times, last: ", ToStd(status.message()))),
          out);
      return;
    }
  }
  Requeue(attempt, /*replay=*/true);
}

void RequestFlow::FailNonsense(AttemptId id, absl::string_view what,
                               Actions* out) {
  outcome_.nonsense = true;
  Fail(id, absl::InternalError(what), true, out);
}

std::vector<Work> RequestFlow::Rest(const Attempt& attempt) const {
  std::vector<uint32_t> open;
  bool fresh = true;
  for (uint32_t index : attempt.work.choices) {
    fresh = fresh && choices_[index].tokens.empty();
    if (!choices_[index].finished) open.push_back(index);
  }
  std::vector<Work> works;
  if (fresh) {
    works.push_back(WorkFor(std::move(open)));
  } else {
    for (uint32_t index : open) works.push_back(WorkFor({index}));
  }
  return works;
}

void RequestFlow::Requeue(const Attempt& attempt, bool replay) {
  for (Work& work : Rest(attempt)) {
    work.placement.avoid = attempt.work.placement.avoid;
    AddTo(&work.placement.avoid, attempt.decode);
    if (attempt.prefill.has_value()) {
      AddTo(&work.placement.avoid, *attempt.prefill);
    }
    work.started = replay || attempt.work.started;
    work.returns = attempt.work.returns;
    if (replay) {
      account_.Replayed();
      ++outcome_.replays;
    }
    outcome_.pending.push_back(std::move(work));
  }
}

Attempt RequestFlow::Close(AttemptId id, Actions* out) {
  auto node = attempts_.extract(id);
  Attempt& attempt = node.mapped();
  if (attempt.prefill_open) {
    v1::PrefillCommand command;
    command.mutable_cancel()->set_attempt_id(id.value());
    out->push_back(SendToPrefill{*attempt.prefill, std::move(command)});
  }
  if (attempt.decode_open) {
    v1::DecodeCommand command;
    command.mutable_release()->set_attempt_id(id.value());
    out->push_back(SendToDecode{attempt.decode, std::move(command)});
  }
  attempt.early.clear();
  outcome_.ended.push_back(attempt);
  return std::move(attempt);
}

void RequestFlow::CompleteIfDone(Actions* out) {
  if (!attempts_.empty() || !AllFinished()) return;
  if (best_.has_value()) {
    for (v1::GenerateEvent& answer : best_->Take()) {
      out->push_back(EmitToClient{request_.id, std::move(answer), true});
    }
  }
  EmitToClient last{request_.id, {}, best_.has_value()};
  v1::Usage* usage = last.event.mutable_usage();
  usage->set_prompt_tokens(request_.spec.prompt_token_ids_size());
  usage->set_completion_tokens(static_cast<uint32_t>(generated()));
  usage->set_cached_prompt_tokens(
      std::min(account_.cached_tokens(),
               static_cast<uint32_t>(request_.spec.prompt_token_ids_size())));
  *last.event.mutable_served() = account_.Result(request_.label);
  out->push_back(std::move(last));
  Finish(absl::OkStatus(), out);
}

void RequestFlow::Finish(absl::Status status, Actions* out) {
  BATON_CHECK(!finished_);
  finished_ = true;
  BATON_FAILPOINT("router.finished");
  out->push_back(FinishClient{request_.id, std::move(status)});
}

}  // namespace baton::router
