#include "tests/simulation/client.h"

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/strings.h"

namespace baton::simulation {

v1::SequenceSpec ToSpec(const ClientPlan& plan) {
  const SequenceParams& params = *plan.params;
  v1::SequenceSpec spec;
  spec.mutable_prompt_token_ids()->Add(params.prompt.begin(),
                                       params.prompt.end());
  v1::SamplingSpec* sampling = spec.mutable_sampling();
  sampling->set_temperature(params.sampling.temperature);
  sampling->set_top_k(params.sampling.top_k);
  sampling->set_top_p(params.sampling.top_p);
  sampling->set_min_p(params.sampling.min_p);
  sampling->set_repetition_penalty(params.sampling.repetition_penalty);
  sampling->set_presence_penalty(params.sampling.presence_penalty);
  sampling->set_frequency_penalty(params.sampling.frequency_penalty);
  sampling->set_seed(params.sampling.seed);
  sampling->set_logprobs(params.sampling.logprobs);
  sampling->set_top_logprobs(params.sampling.top_logprobs);
  for (const auto& [token, bias] : params.sampling.logit_bias) {
    (*sampling->mutable_logit_bias())[token] = bias;
  }
  spec.set_max_tokens(params.max_tokens);
  spec.set_min_tokens(params.min_tokens);
  spec.set_ignore_eos(params.ignore_eos);
  spec.mutable_stop_strings()->Add(params.stop_strings.begin(),
                                   params.stop_strings.end());
  spec.mutable_stop_token_ids()->Add(params.stop_token_ids.begin(),
                                     params.stop_token_ids.end());
  spec.set_skip_special_tokens(params.skip_special_tokens);
  for (uint32_t choice = 0; choice < plan.choices; ++choice) {
    spec.add_choices()->set_index(choice);
  }
  return spec;
}

Client::Client(std::string name, ClientPlan plan, Promise promise,
               Monitor* monitor)
    : name_(std::move(name)),
      plan_(std::move(plan)),
      promise_(promise),
      monitor_(monitor),
      choices_(plan_.choices) {
  for (uint32_t version = 0; version < plan_.expected.size(); ++version) {
    versions_.push_back(version);
    std::vector<std::string>& texts = expected_text_.emplace_back();
    for (const ToyAnswer& answer : plan_.expected[version]) {
      std::string& text = texts.emplace_back();
      for (const std::string& piece : answer.texts) text += piece;
    }
  }
}

void Client::Submitted(MonotonicTime now) {
  state_ = State::kRunning;
  deadline_ = now + plan_.deadline;
  monitor_->Count("requests");
}

bool Client::Cancelled() {
  if (state_ != State::kRunning) return false;
  state_ = State::kCancelled;
  monitor_->Count(StrCat("cancels while ", phase));
  return true;
}

void Client::Received(const v1::GenerateEvent& event) {
  if (over()) return Violation("event after the end");
  ++events_;
  if (event.has_usage()) usage_ = event.usage();
  if (event.has_served()) {
    served_ = true;
    monitor_->Count("replays", event.served().replays());
  }
  if (event.choice() >= choices_.size()) return Violation("unknown choice");
  Choice& choice = choices_[event.choice()];
  if (choice.finished && (event.token_ids_size() > 0 || event.has_finish() ||
                          !event.text().empty())) {
    return Violation(
        StrCat("choice ", event.choice(), " goes on after its end"));
  }
  std::string difference;
  std::vector<uint32_t> versions;
  for (uint32_t version : versions_) {
    std::string here = Difference(event, version);
    if (here.empty()) versions.push_back(version);
    if (difference.empty()) difference = std::move(here);
  }
  if (versions.empty()) return Violation(difference);
  versions_ = std::move(versions);
  choice.tokens += event.token_ids_size();
  choice.text_bytes += event.text().size();
  choice.finished = choice.finished || event.has_finish();
}

std::string Client::Difference(const v1::GenerateEvent& event,
                               uint32_t version) const {
  const Choice& choice = choices_[event.choice()];
  const ToyAnswer& expected = plan_.expected[version][event.choice()];
  const bool logprobs = plan_.params->sampling.logprobs;
  if (event.logprobs_size() != (logprobs ? event.token_ids_size() : 0)) {
    return StrCat(event.logprobs_size(), " logprobs for ",
                  event.token_ids_size(), " tokens");
  }
  size_t text_end = choice.text_bytes;
  size_t index = choice.tokens;
  for (int i = 0; i < event.token_ids_size(); ++i, ++index) {
    if (index >= expected.tokens.size() ||
        event.token_ids(i) != expected.tokens[index]) {
      return StrCat("choice ", event.choice(), " token ", index, " is ",
                    event.token_ids(i), ", not that of the undisturbed answer");
    }
    if (i < event.logprobs_size() &&
        event.logprobs(i).logprob() != expected.logprobs[index]) {
      return StrCat("choice ", event.choice(), " logprob ", index,
                    " differs from the undisturbed answer");
    }
    text_end += expected.texts[index].size();
  }
  const std::string& text = expected_text_[version][event.choice()];
  if (event.text() !=
      text.substr(choice.text_bytes, text_end - choice.text_bytes)) {
    return StrCat("choice ", event.choice(), " text '", event.text(),
                  "' at byte ", choice.text_bytes,
                  " differs from the undisturbed answer");
  }
  if (!event.has_finish()) return "";
  if (index != expected.tokens.size()) {
    return StrCat("choice ", event.choice(), " ended after ", index, " of ",
                  expected.tokens.size(), " tokens");
  }
  const v1::Finish& finish = event.finish();
  const FinishCause& cause = expected.finish;
  const v1::FinishReason reason = cause.kind == FinishKind::kStop
                                      ? v1::FINISH_REASON_STOP
                                      : v1::FINISH_REASON_LENGTH;
  if (finish.reason() != reason ||
      finish.stop_string() != cause.stop_string.value_or("") ||
      finish.stop_token_id() != cause.stop_token.value_or(0)) {
    return StrCat("finish {", finish.ShortDebugString(),
                  "} differs from the undisturbed answer");
  }
  return "";
}

void Client::Finished(const absl::Status& status, MonotonicTime now) {
  if (over()) return Violation("a second end");
  const bool cancelled = state_ == State::kCancelled;
  state_ = State::kEnded;
  finished_at_ = monitor_->now();
  monitor_->Count(StrCat("ended ", absl::StatusCodeToString(status.code())));
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return CheckSuccess();
    case absl::StatusCode::kCancelled:
      if (!cancelled) Violation("CANCELLED, but nobody did");
      return;
    case absl::StatusCode::kDeadlineExceeded:
      // Who leaves shortly before its deadline has left for it.
      if (cancelled && now + std::chrono::milliseconds(50) >= deadline_) return;
      if (now < deadline_) Violation("DEADLINE_EXCEEDED before the deadline");
      if (promise_.success && promise_.admission && plan_.patient) {
        Violation("too slow for a calm day");
      }
      return;
    case absl::StatusCode::kInternal:
      if (promise_.numerics) Violation(StrCat("ends ", status.ToString()));
      return;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
      // Hurried clients may be told at once that they would be late.
      if (!plan_.patient &&
          (absl::StartsWith(status.message(), "queue: too late to start") ||
           absl::StartsWith(status.message(), "queue: the deadline might"))) {
        return;
      }
      if (promise_.success && !cancelled &&
          (promise_.admission || absl::IsUnavailable(status))) {
        Violation(
            StrCat("failed in a cluster that works: ", status.ToString()));
      }
      return;
    default:
      Violation(StrCat("unexpected end: ", status.ToString()));
  }
}

void Client::CheckSuccess() {
  uint32_t tokens = 0;
  for (size_t i = 0; i < choices_.size(); ++i) {
    tokens += static_cast<uint32_t>(choices_[i].tokens);
    if (!choices_[i].finished) {
      Violation(StrCat("OK, but choice ", i, " has no end"));
    }
  }
  if (!served_ || usage_.completion_tokens() != tokens ||
      usage_.prompt_tokens() != plan_.params->prompt.size()) {
    Violation(StrCat("usage {", usage_.ShortDebugString(), "} for ",
                     plan_.params->prompt.size(), " prompt and ", tokens,
                     " output tokens"));
  }
}

void Client::CheckOver() {
  if (!over()) Violation("not over at its deadline plus grace");
}

void Client::Violation(std::string_view what) {
  monitor_->Violation(name_, what);
}

}  // namespace baton::simulation
