#ifndef BATON_ROUTER_FRONT_DOOR_GENERATION_SERVICE_H_
#define BATON_ROUTER_FRONT_DOOR_GENERATION_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "proto/generation.grpc.pb.h"
#include "router/front_door/authentication.h"
#include "router/front_door/generate_call.h"
#include "router/front_door/held_back_budget.h"
#include "router/front_door/open_requests.h"
#include "router/front_door/prompt_builder.h"
#include "router/front_door/prompt_sizes.h"
#include "router/front_door/request_log.h"
#include "router/front_door/request_validation.h"
#include "router/front_door/router_driver.h"

namespace baton::router {

struct ServiceOptions {
  ServingPolicy policy;
  // Of requests without a deadline of their own, and the longest allowed.
  Duration max_deadline = std::chrono::minutes(10);
  int64_t created_unix_s = 0;  // of the model card
  // Who may call; null: everybody, as tenant "". Outlives the service.
  const ApiTokenFile* api_tokens = nullptr;
  // Of one tenant, or without credentials of one machine.
  uint32_t max_requests_per_client = 4096;
  // For answers of best_of requests, until their clients have read them.
  uint64_t max_held_back_bytes = 256 << 20;
  StreamLimits stream{};
};

// The methods take bytes, so that a request that cannot be read gets an answer.
using RawGeneration = v1::Generation::WithRawCallbackMethod_Generate<
    v1::Generation::WithRawCallbackMethod_Tokenize<
        v1::Generation::WithRawCallbackMethod_Detokenize<
            v1::Generation::WithRawCallbackMethod_ListModels<
                v1::Generation::WithRawCallbackMethod_GetClusterInfo<
                    v1::Generation::Service>>>>>;

// baton.v1.Generation. Every method wants a credential if there are any, and
// nothing is read before it was seen. Thread-safe.
class GenerationService final : public RawGeneration {
 public:
  // Pointers outlive the service.
  GenerationService(ServiceOptions options, const PromptBuilder* prompts,
                    RouterDriver* driver);

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Generate(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override;
  // Calls of Generate so far.
  uint64_t generate_calls() const { return generate_calls_.load(); }
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetClusterInfo(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* request,
                                           grpc::ByteBuffer* response) override;

 private:
  // Whose share of the router a call of the tenant takes.
  std::string ClientOf(const grpc::CallbackServerContext& context,
                       const std::string& tenant) const;
  // The tenant that calls.
  absl::StatusOr<std::string> Admit(const grpc::CallbackServerContext& context);
  // Everything that is checked before a request reaches the driver; `request`
  // was received.
  absl::Status Accept(const grpc::CallbackServerContext& context,
                      const grpc::ByteBuffer& bytes, ClientRequest* accepted,
                      std::shared_ptr<void>* slot);
  // Memory for what a request holds back, added to its slot.
  absl::Status HoldBack(const v1::GenerateRequest& request,
                        const std::string& client,
                        const ClientRequest& accepted,
                        std::shared_ptr<void>* slot);
  // What `choices` answers of so many tokens take while they are held back.
  uint64_t HeldBackBytes(const v1::GenerateRequest& request, uint64_t choices,
                         uint64_t tokens) const;
  absl::Status RefuseEarly(const v1::GenerateRequest& request,
                           const ServingPolicy& policy,
                           const std::string& client,
                           const ValidRequest& so_far,
                           const ClientRequest& accepted);
  // Admits, reads, runs `method` and writes its response.
  template <class Request, class Response>
  grpc::ServerUnaryReactor* Answer(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer& request,
      grpc::ByteBuffer* response,
      absl::Status (GenerationService::*method)(const Request&, Response*)
          const);
  ServingPolicy CurrentPolicy() const;
  std::string NewLabel() const;
  absl::Status RunTokenize(const v1::TokenizeRequest& request,
                           v1::TokenizeResponse* response) const;
  absl::Status RunDetokenize(const v1::DetokenizeRequest& request,
                             v1::DetokenizeResponse* response) const;
  absl::Status RunListModels(const v1::ListModelsRequest& request,
                             v1::ListModelsResponse* response) const;

  const ServiceOptions options_;
  const PromptBuilder* const prompts_;
  RouterDriver* const driver_;
  const Authenticator authenticator_;
  OpenRequests open_requests_;
  HeldBackBudget held_back_;
  const uint64_t longest_token_text_;
  PromptSizes prompt_sizes_;
  RequestLog log_;
  std::atomic<uint64_t> generate_calls_{0};
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_GENERATION_SERVICE_H_
