#include "router/front_door/generation_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/random_bytes.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/rpc/status.h"
#include "router/front_door/call_metadata.h"
#include "router/front_door/refused_call.h"
#include "router/front_door/wire_message.h"
#include "router/request_flow/best_answers.h"

namespace baton::router {
namespace {

MonotonicTime DeadlineOf(const grpc::CallbackServerContext& context,
                         Duration most) {
  const auto now = std::chrono::system_clock::now();
  const auto client = context.deadline();
  const Duration left = client - now < most
                            ? std::chrono::duration_cast<Duration>(client - now)
                            : most;
  return MonotonicNow() + left;
}

grpc::ServerUnaryReactor* Reply(grpc::CallbackServerContext* context,
                                const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace

GenerationService::GenerationService(ServiceOptions options,
                                     const PromptBuilder* prompts,
                                     RouterDriver* driver)
    : options_(std::move(options)),
      prompts_(prompts),
      driver_(driver),
      authenticator_(options_.api_tokens),
      open_requests_(options_.max_requests_per_client),
      held_back_(options_.max_held_back_bytes,
                 [driver](double bytes) {
                   driver->metrics()->AddHeldBackBytes(bytes);
                 }),
      longest_token_text_(LongestTokenText(prompts->tokenizer())) {}

grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerationService::Generate(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  ClientRequest accepted;
  accepted.received = MonotonicNow();
  accepted.id = driver_->NewRequestId();
  generate_calls_.fetch_add(1);
  const ClientMetadata& metadata = context->client_metadata();
  accepted.label = AcceptRequestLabel(HeaderOf(metadata, "x-request-id"))
                       .value_or(NewLabel());
  context->AddInitialMetadata("x-request-id", accepted.label);
  std::string traceparent =
      AcceptTraceparent(HeaderOf(metadata, "traceparent"));
  std::shared_ptr<void> slot;
  const absl::Status status = Accept(*context, *request, &accepted, &slot);
  if (!status.ok()) {
    driver_->metrics()->FinishedWithout(status.code());
    log_.Ended(
        {accepted.id, accepted.label, traceparent, status, accepted.received});
    return new RefusedCall(driver_, status);
  }
  const auto call = GenerateCall::Create(
      context, {driver_, &log_}, options_.stream, std::move(traceparent));
  call->Run(std::move(accepted), std::move(slot));
  return call.get();
}

std::string GenerationService::ClientOf(
    const grpc::CallbackServerContext& context,
    const std::string& tenant) const {
  return authenticator_.required() ? tenant
                                   : std::string(HostOfPeer(context.peer()));
}

absl::StatusOr<std::string> GenerationService::Admit(
    const grpc::CallbackServerContext& context) {
  BATON_RETURN_IF_ERROR(MetadataLimit::Check(context.client_metadata()));
  if (const int count = WorkerHeaders(context.client_metadata()); count > 0) {
    driver_->metrics()->IgnoredHeaders(count);
  }
  absl::StatusOr<std::string> tenant =
      authenticator_.TenantOf(context.client_metadata());
  if (!tenant.ok()) driver_->metrics()->AuthenticationFailed();
  return tenant;
}

absl::Status GenerationService::Accept(
    const grpc::CallbackServerContext& context, const grpc::ByteBuffer& bytes,
    ClientRequest* accepted, std::shared_ptr<void>* slot) {
  BATON_ASSIGN_OR_RETURN(accepted->tenant, Admit(context));
  const std::string client = ClientOf(context, accepted->tenant);
  BATON_ASSIGN_OR_RETURN(*slot, open_requests_.Open(client));
  accepted->deadline = DeadlineOf(context, options_.max_deadline);
  if (accepted->deadline <= MonotonicNow()) {
    return absl::DeadlineExceededError("deadline: passed before the start");
  }
  v1::GenerateRequest request;
  BATON_RETURN_IF_ERROR(ReadMessage(bytes, &request));
  const ServingPolicy policy = CurrentPolicy();
  BATON_ASSIGN_OR_RETURN(
      ValidRequest valid,
      ValidateRequest(request, policy, *prompts_, RandomNonZero64(),
                      [&](const ValidRequest& so_far) {
                        return RefuseEarly(request, policy, client, so_far,
                                           *accepted);
                      }));
  accepted->spec = std::move(valid.spec);
  accepted->priority = valid.priority;
  accepted->best = valid.best;
  accepted->tell_logprobs = valid.tell_logprobs;
  accepted->cache_salt = CacheSalt(accepted->tenant, request.cache_salt());
  prompt_sizes_.Saw(request, accepted->spec.prompt_token_ids_size());
  return accepted->best > 0 ? HoldBack(request, client, *accepted, slot)
                            : absl::OkStatus();
}

uint64_t GenerationService::HeldBackBytes(const v1::GenerateRequest& request,
                                          uint64_t choices,
                                          uint64_t tokens) const {
  std::optional<uint32_t> top_logprobs;
  if (request.has_logprobs()) top_logprobs = request.logprobs();
  return BestAnswers::MostBytes(choices, tokens, longest_token_text_,
                                top_logprobs);
}

absl::Status GenerationService::HoldBack(const v1::GenerateRequest& request,
                                         const std::string& client,
                                         const ClientRequest& accepted,
                                         std::shared_ptr<void>* slot) {
  BATON_ASSIGN_OR_RETURN(
      std::shared_ptr<void> reserved,
      held_back_.Reserve(client,
                         HeldBackBytes(request, accepted.spec.choices_size(),
                                       accepted.spec.max_tokens())));
  *slot =
      std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(
          std::move(*slot), std::move(reserved));
  return absl::OkStatus();
}

absl::Status GenerationService::RefuseEarly(const v1::GenerateRequest& request,
                                            const ServingPolicy& policy,
                                            const std::string& client,
                                            const ValidRequest& so_far,
                                            const ClientRequest& accepted) {
  RequestOutline outline{.tenant = accepted.tenant,
                         .priority = so_far.priority,
                         .deadline = accepted.deadline,
                         .prompt_tokens = prompt_sizes_.Guess(request)};
  outline.max_tokens = std::max<int64_t>(
      1,
      request.has_max_tokens()
          ? std::min<int64_t>(request.max_tokens(), policy.max_context_tokens)
          : std::min<int64_t>(
                policy.default_max_tokens,
                policy.max_context_tokens - PromptSizes::Most(request)));
  BATON_RETURN_IF_ERROR(driver_->RefuseEarly(outline, accepted.received));
  if (so_far.best == 0) return absl::OkStatus();
  return held_back_.CheckRoom(
      client,
      HeldBackBytes(request, so_far.spec.choices_size(), outline.max_tokens));
}

template <class Request, class Response>
grpc::ServerUnaryReactor* GenerationService::Answer(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer& request,
    grpc::ByteBuffer* response,
    absl::Status (GenerationService::*method)(const Request&, Response*)
        const) {
  absl::Status status = Admit(*context).status();
  Request read;
  if (status.ok()) status = ReadMessage(request, &read);
  Response answer;
  if (status.ok()) status = (this->*method)(read, &answer);
  if (status.ok()) *response = WriteMessage(answer);
  return Reply(context, status);
}

grpc::ServerUnaryReactor* GenerationService::Tokenize(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer(context, *request, response, &GenerationService::RunTokenize);
}

grpc::ServerUnaryReactor* GenerationService::Detokenize(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer(context, *request, response, &GenerationService::RunDetokenize);
}

grpc::ServerUnaryReactor* GenerationService::ListModels(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Answer(context, *request, response, &GenerationService::RunListModels);
}

grpc::ServerUnaryReactor* GenerationService::GetClusterInfo(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  absl::Status status = Admit(*context).status();
  v1::GetClusterInfoRequest read;
  if (status.ok()) status = ReadMessage(*request, &read);
  if (!status.ok()) return Reply(context, status);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  driver_->Describe([this, reactor, response](v1::GetClusterInfoResponse info) {
    info.set_model(options_.policy.model_name);
    *response = WriteMessage(info);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

ServingPolicy GenerationService::CurrentPolicy() const {
  ServingPolicy policy = options_.policy;
  const uint32_t workers = driver_->max_context_tokens();
  if (workers > 0) {
    policy.max_context_tokens = std::min(policy.max_context_tokens, workers);
  }
  return policy;
}

std::string GenerationService::NewLabel() const {
  return absl::StrFormat("req-%016x", RandomNonZero64());
}

absl::Status GenerationService::RunTokenize(
    const v1::TokenizeRequest& request, v1::TokenizeResponse* response) const {
  if (absl::Status status =
          CheckModel(request.model(), options_.policy.model_name);
      !status.ok()) {
    return status;
  }
  FieldErrors errors;
  std::vector<TokenId> tokens;
  switch (request.input_case()) {
    case v1::TokenizeRequest::kText: {
      EncodeOptions encode;
      encode.parse_special = request.parse_special();
      encode.add_special = !request.has_add_special() || request.add_special();
      tokens = prompts_->FromText("text", request.text(), encode, &errors);
      break;
    }
    case v1::TokenizeRequest::kChat: {
      const bool escape = request.has_parse_special()
                              ? !request.parse_special()
                              : options_.policy.escape_special_tokens;
      ChatPrompt prompt =
          prompts_->FromChat("chat", request.chat(), escape, &errors);
      tokens = std::move(prompt.tokens);
      response->set_rendered(std::move(prompt.rendered));
      break;
    }
    case v1::TokenizeRequest::INPUT_NOT_SET:
      errors.Add("input", "exactly one of text, chat (got none)");
  }
  *response->mutable_token_ids() = {tokens.begin(), tokens.end()};
  return errors.ToStatus();
}

absl::Status GenerationService::RunListModels(
    const v1::ListModelsRequest&, v1::ListModelsResponse* response) const {
  v1::ModelCard* card = response->add_models();
  card->set_id(options_.policy.model_name);
  card->set_max_context_tokens(CurrentPolicy().max_context_tokens);
  card->set_vocabulary_size(
      static_cast<uint32_t>(prompts_->tokenizer().vocabulary_size()));
  card->set_created_unix_s(options_.created_unix_s);
  return absl::OkStatus();
}

absl::Status GenerationService::RunDetokenize(
    const v1::DetokenizeRequest& request,
    v1::DetokenizeResponse* response) const {
  if (absl::Status status =
          CheckModel(request.model(), options_.policy.model_name);
      !status.ok()) {
    return status;
  }
  FieldErrors errors;
  const std::vector<TokenId> tokens =
      prompts_->FromIds("token_ids", request.token_ids(), &errors);
  if (!errors.empty()) return errors.ToStatus();
  response->set_text(
      prompts_->tokenizer().Decode(tokens, request.skip_special_tokens()));
  return absl::OkStatus();
}

}  // namespace baton::router
