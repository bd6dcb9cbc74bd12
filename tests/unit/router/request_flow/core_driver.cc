#include "tests/unit/router/request_flow/core_driver.h"

#include <gtest/gtest.h>

#include <utility>

#include "common/base/strings.h"
#include "common/tokens/token.h"

namespace baton::router {
namespace {

RouterOptions WithVocabulary(RouterOptions options) {
  options.vocabulary_size = kVocabulary;
  return options;
}

}  // namespace

CoreDriver::CoreDriver(RouterOptions options)
    : now_(std::chrono::hours(1)),
      core_(WithVocabulary(options), MakeRoundRobin(), now_) {}

v1::WorkerHello CoreDriver::Hello(const std::string& id, v1::WorkerRole role) {
  v1::WorkerHello hello;
  hello.set_protocol(1);
  hello.set_worker_id(id);
  hello.set_role(role);
  hello.set_fingerprint(std::string(32, 'f'));
  hello.set_block_tokens(kBlockTokens);
  hello.set_max_context_tokens(2048);
  hello.set_kv_blocks(1000);
  hello.set_max_sequences(64);
  hello.set_vocabulary_size(kVocabulary);
  if (role == v1::WORKER_ROLE_DECODE) {
    hello.set_disaggregation(v1::DISAGGREGATION_ALWAYS);
  }
  return hello;
}

WorkerIndex CoreDriver::AddPrefill(const std::string& id, uint64_t credit) {
  const WorkerIndex worker(next_worker_++);
  Handle(WorkerAdded{worker, v1::WORKER_ROLE_PREFILL, id});
  Up(worker, Hello(id, v1::WORKER_ROLE_PREFILL));
  Credit(worker, credit);
  return worker;
}

WorkerIndex CoreDriver::AddDecode(const std::string& id,
                                  v1::Disaggregation mode, uint64_t credit) {
  const WorkerIndex worker(next_worker_++);
  Handle(WorkerAdded{worker, v1::WORKER_ROLE_DECODE, id});
  v1::WorkerHello hello = Hello(id, v1::WORKER_ROLE_DECODE);
  hello.set_disaggregation(mode);
  Up(worker, std::move(hello));
  Credit(worker, credit);
  return worker;
}

void CoreDriver::Up(WorkerIndex worker, v1::WorkerHello hello,
                    uint64_t session) {
  if (session == 0) session = newest_session_ + 1;
  newest_session_ = std::max(newest_session_, session);
  if (!roles_.contains(worker)) roles_[worker] = hello.role();
  sequences_[worker] = 1;
  up_[worker] = true;
  Handle(SessionUp{worker, roles_[worker], std::move(hello), session});
}

void CoreDriver::Down(WorkerIndex worker) {
  up_[worker] = false;
  Handle(SessionDown{worker, absl::UnavailableError("gone")});
}

void CoreDriver::Load(WorkerIndex worker, v1::WorkerLoad load) {
  if (roles_.at(worker) == v1::WORKER_ROLE_PREFILL) {
    v1::PrefillEvent event;
    *event.mutable_load() = std::move(load);
    FromPrefill(worker, std::move(event));
  } else {
    v1::DecodeEvent event;
    *event.mutable_load() = std::move(load);
    FromDecode(worker, std::move(event));
  }
}

void CoreDriver::Credit(WorkerIndex worker, uint64_t tokens) {
  v1::WorkerLoad load;
  load.set_granted_prefill_tokens(tokens);
  Load(worker, std::move(load));
}

RequestId CoreDriver::Ask(int prompt, int n, uint32_t max_tokens,
                          Duration timeout, int priority,
                          const std::string& tenant) {
  ClientRequest request;
  request.id = RequestId(next_request_++);
  for (int i = 0; i < prompt; ++i) request.spec.add_prompt_token_ids(i);
  request.spec.set_max_tokens(max_tokens);
  for (int i = 0; i < n; ++i) request.spec.add_choices()->set_index(i);
  request.received = now_;
  request.deadline = now_ + timeout;
  request.priority = priority;
  request.tenant = tenant;
  request.cache_salt = StrCat("salt of ", tenant);
  request.label = StrCat("label-", request.id.value());
  const RequestId id = request.id;
  answers_[id];
  Handle(std::move(request));
  return id;
}

RequestId CoreDriver::AskForBest(uint32_t best, int choices) {
  ClientRequest request;
  request.id = RequestId(next_request_++);
  for (uint32_t i = 0; i < 10; ++i) request.spec.add_prompt_token_ids(i);
  request.spec.set_max_tokens(8);
  request.spec.mutable_sampling()->set_logprobs(true);
  for (int i = 0; i < choices; ++i) request.spec.add_choices()->set_index(i);
  request.received = now_;
  request.deadline = now_ + std::chrono::seconds(60);
  request.best = best;
  request.tell_logprobs = false;
  const RequestId id = request.id;
  answers_[id];
  Handle(std::move(request));
  return id;
}

void CoreDriver::Cancel(RequestId id) { Handle(ClientCancelled{id}); }

void CoreDriver::Reserved(WorkerIndex decode, AttemptId attempt) {
  v1::DecodeEvent event;
  event.mutable_reserved()->set_attempt_id(attempt.value());
  event.mutable_reserved()->mutable_ticket()->set_landing_id(attempt.value());
  FromDecode(decode, std::move(event));
}

void CoreDriver::Refused(WorkerIndex decode, AttemptId attempt,
                         uint32_t retry_ms) {
  v1::DecodeEvent event;
  event.mutable_refused()->set_attempt_id(attempt.value());
  event.mutable_refused()->set_retry_after_ms(retry_ms);
  FromDecode(decode, std::move(event));
}

void CoreDriver::FirstTokens(WorkerIndex prefill, AttemptId attempt,
                             std::vector<DeltaSpec> tokens) {
  v1::PrefillEvent event;
  auto* first = event.mutable_first_tokens();
  first->set_attempt_id(attempt.value());
  first->set_cached_tokens(3);
  first->set_chunks(2);
  Fill(std::move(tokens), attempt, first->mutable_tokens());
  FromPrefill(prefill, std::move(event));
}

void CoreDriver::HandedOver(WorkerIndex prefill, AttemptId attempt) {
  v1::PrefillEvent event;
  event.mutable_handed_over()->set_attempt_id(attempt.value());
  FromPrefill(prefill, std::move(event));
}

void CoreDriver::LandingProgress(WorkerIndex decode, AttemptId attempt,
                                 uint32_t blocks) {
  v1::DecodeEvent event;
  event.mutable_landing_progress()->set_attempt_id(attempt.value());
  event.mutable_landing_progress()->set_blocks(blocks);
  FromDecode(decode, std::move(event));
}

void CoreDriver::Landed(WorkerIndex decode, AttemptId attempt) {
  v1::DecodeEvent event;
  event.mutable_landed()->set_attempt_id(attempt.value());
  event.mutable_landed()->set_bytes(4096);
  event.mutable_landed()->set_blocks(1);
  event.mutable_landed()->set_transport("loopback");
  FromDecode(decode, std::move(event));
}

void CoreDriver::Tokens(WorkerIndex decode, AttemptId attempt,
                        std::vector<DeltaSpec> tokens) {
  v1::DecodeEvent event;
  Fill(std::move(tokens), attempt, event.mutable_tokens()->mutable_tokens());
  FromDecode(decode, std::move(event));
}

void CoreDriver::Done(WorkerIndex decode, AttemptId attempt) {
  v1::DecodeEvent event;
  event.mutable_done()->set_attempt_id(attempt.value());
  event.mutable_done()->set_cached_tokens(5);
  FromDecode(decode, std::move(event));
}

void CoreDriver::PushWanted(WorkerIndex decode, AttemptId attempt,
                            uint64_t landing) {
  v1::DecodeEvent event;
  v1::PushWanted& wanted = *event.mutable_push_wanted();
  wanted.set_attempt_id(attempt.value());
  wanted.mutable_ticket()->set_landing_id(landing);
  wanted.mutable_ticket()->set_token_count(32);
  wanted.set_prefix_hash(std::string(32, 'h'));
  wanted.set_deadline_ms(900);
  FromDecode(decode, std::move(event));
}

void CoreDriver::PushRefused(WorkerIndex prefill, AttemptId attempt,
                             uint64_t landing) {
  v1::PrefillEvent event;
  v1::PushRefused& refused = *event.mutable_push_refused();
  refused.set_attempt_id(attempt.value());
  refused.set_landing_id(landing);
  refused.set_reason("not held");
  refused.set_gone(true);
  FromPrefill(prefill, std::move(event));
}

void CoreDriver::Failed(WorkerIndex worker, AttemptId attempt, bool retryable,
                        absl::StatusCode code, v1::FailureCause cause) {
  v1::AttemptFailure failure;
  failure.set_attempt_id(attempt.value());
  failure.set_code(static_cast<int>(code));
  failure.set_message("broken");
  failure.set_retryable(retryable);
  failure.set_cause(cause);
  if (roles_.at(worker) == v1::WORKER_ROLE_PREFILL) {
    v1::PrefillEvent event;
    *event.mutable_failed() = std::move(failure);
    FromPrefill(worker, std::move(event));
  } else {
    v1::DecodeEvent event;
    *event.mutable_failed() = std::move(failure);
    FromDecode(worker, std::move(event));
  }
}

std::string CoreDriver::StateOf(WorkerIndex worker) const {
  return core_.Workers().at(worker.value()).state();
}

AttemptId CoreDriver::RunToDecode(RequestId request, WorkerIndex prefill,
                                  WorkerIndex decode) {
  const AttemptId attempt = last_attempt_;
  std::vector<DeltaSpec> first;
  for (const v1::ChoiceSpec& choice : last_spec().choices()) {
    first.push_back({choice.index(),
                     static_cast<uint32_t>(
                         answer(request).tokens.contains(choice.index())
                             ? answer(request).tokens.at(choice.index()).size()
                             : 0),
                     100 + choice.index()});
  }
  Reserved(decode, attempt);
  FirstTokens(prefill, attempt, std::move(first));
  Landed(decode, attempt);
  HandedOver(prefill, attempt);
  return attempt;
}

void CoreDriver::Handle(Event event) {
  for (const Action& action : core_.Handle(std::move(event), now_)) Do(action);
}

void CoreDriver::Suspend(Duration d) {
  now_ += d;
  Handle(Tick{});
}

void CoreDriver::Advance(Duration d) {
  const MonotonicTime end = now_ + d;
  while (core_.NextDeadline() <= end) {
    now_ = std::max(now_, core_.NextDeadline());
    Handle(Tick{});
    ASSERT_GT(core_.NextDeadline(), now_) << "a tick must make progress";
  }
  now_ = end;
}

std::vector<std::string> CoreDriver::TakeLog() {
  return std::exchange(log_, {});
}

void CoreDriver::Do(const Action& action) {
  if (const auto* send = std::get_if<SendToPrefill>(&action)) {
    EXPECT_TRUE(up_[send->worker]);
    if (send->command.has_push()) {
      last_push_ = send->command.push();
      log_.push_back(StrCat("push ", send->worker.value(), " #",
                            last_push_.attempt_id(), " L",
                            last_push_.ticket().landing_id()));
      return;
    }
    const bool start = send->command.has_start();
    log_.push_back(StrCat(start ? "start " : "cancel ", send->worker.value(),
                          " #",
                          start ? send->command.start().attempt_id()
                                : send->command.cancel().attempt_id()));
    if (start) {
      EXPECT_EQ(send->command.start().ticket().landing_id(),
                send->command.start().attempt_id());
      EXPECT_GT(send->command.start().deadline_ms(), 0u);
    }
  } else if (const auto* ask = std::get_if<SendToDecode>(&action)) {
    EXPECT_TRUE(up_[ask->worker]);
    if (ask->command.has_push_refused()) {
      const v1::PushRefused& refused = ask->command.push_refused();
      log_.push_back(StrCat("refuse ", ask->worker.value(), " #",
                            refused.attempt_id(), " L", refused.landing_id(),
                            ": ", refused.reason(),
                            refused.gone() ? ", gone" : ""));
      return;
    }
    if (ask->command.has_release()) {
      log_.push_back(StrCat("release ", ask->worker.value(), " #",
                            ask->command.release().attempt_id()));
      return;
    }
    const bool reserve = ask->command.has_reserve();
    last_attempt_ = AttemptId(reserve ? ask->command.reserve().attempt_id()
                                      : ask->command.serve().attempt_id());
    specs_[last_attempt_] = reserve ? ask->command.reserve().sequence()
                                    : ask->command.serve().sequence();
    log_.push_back(StrCat(reserve ? "reserve " : "serve ", ask->worker.value(),
                          " #", last_attempt_.value()));
  } else if (const auto* emit = std::get_if<EmitToClient>(&action)) {
    Answer& answer = answers_.at(emit->id);
    EXPECT_FALSE(answer.status.has_value()) << "emitted after the end";
    std::string line =
        StrCat("emit ", emit->id.value(), ": c", emit->event.choice());
    auto& tokens = answer.tokens[emit->event.choice()];
    for (uint32_t token : emit->event.token_ids()) {
      StrAppend(&line, " ", token);
      tokens.push_back(token);
    }
    if (emit->event.has_finish()) {
      EXPECT_FALSE(answer.finished.contains(emit->event.choice()));
      answer.finished[emit->event.choice()] = emit->event.finish().reason();
      line += " end";
    }
    if (emit->event.has_usage()) {
      answer.usage = emit->event.usage();
      answer.served = emit->event.served();
      line = StrCat("account ", emit->id.value());
    }
    log_.push_back(std::move(line));
  } else if (const auto* held = std::get_if<HeldBack>(&action)) {
    EXPECT_FALSE(answers_.at(held->id).status.has_value());
    answers_.at(held->id).held_back += held->tokens;
  } else if (const auto* finish = std::get_if<FinishClient>(&action)) {
    Answer& answer = answers_.at(finish->id);
    EXPECT_FALSE(answer.status.has_value()) << "finished twice";
    answer.status = finish->status;
    EXPECT_EQ(finish->status.ok(), answer.usage.prompt_tokens() > 0);
    log_.push_back(StrCat("finish ", finish->id.value(), ": ",
                          absl::StatusCodeToString(finish->status.code())));
  } else if (const auto* close = std::get_if<CloseSession>(&action)) {
    up_[close->worker] = false;
    log_.push_back(StrCat(close->reopen ? "close " : "hold ",
                          close->worker.value(), ": ", close->reason));
  } else if (const auto* open = std::get_if<OpenSession>(&action)) {
    log_.push_back(StrCat("open ", open->worker.value()));
  }
}

void CoreDriver::FromPrefill(WorkerIndex worker, v1::PrefillEvent event) {
  event.set_sequence(NextSequence(worker));
  Handle(PrefillMessage{worker, std::move(event)});
}

void CoreDriver::FromDecode(WorkerIndex worker, v1::DecodeEvent event) {
  event.set_sequence(NextSequence(worker));
  Handle(DecodeMessage{worker, std::move(event)});
}

void CoreDriver::Fill(std::vector<DeltaSpec> tokens, AttemptId attempt,
                      google::protobuf::RepeatedPtrField<v1::TokenDelta>* out) {
  for (const DeltaSpec& token : tokens) {
    v1::TokenDelta* delta = out->Add();
    delta->set_attempt_id(attempt.value());
    delta->set_choice(token.choice);
    delta->set_index(token.index);
    delta->set_token_id(token.token);
    delta->set_text(StrCat("<", token.token, ">"));
    delta->set_logprob(-static_cast<float>(token.token));
    if (token.finish) {
      delta->mutable_finish()->set_reason(v1::FINISH_REASON_STOP);
    }
  }
}

}  // namespace baton::router
