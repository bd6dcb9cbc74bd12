#ifndef BATON_ROUTER_FRONT_DOOR_GENERATION_SERVICE_H_
#define BATON_ROUTER_FRONT_DOOR_GENERATION_SERVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "proto/generation.grpc.pb.h"
#include "router/front_door/authentication.h"
#include "router/front_door/generate_call.h"
#include "router/front_door/open_requests.h"
#include "router/front_door/prompt_builder.h"
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
  StreamLimits stream{};
};

// baton.v1.Generation. Every method wants a credential if there are any.
// Thread-safe.
class GenerationService final : public v1::Generation::CallbackService {
 public:
  // Pointers outlive the service.
  GenerationService(ServiceOptions options, const PromptBuilder* prompts,
                    RouterDriver* driver);

  grpc::ServerWriteReactor<v1::GenerateEvent>* Generate(
      grpc::CallbackServerContext* context,
      const v1::GenerateRequest* request) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const v1::TokenizeRequest* request,
                                     v1::TokenizeResponse* response) override;
  grpc::ServerUnaryReactor* Detokenize(
      grpc::CallbackServerContext* context,
      const v1::DetokenizeRequest* request,
      v1::DetokenizeResponse* response) override;
  grpc::ServerUnaryReactor* ListModels(
      grpc::CallbackServerContext* context,
      const v1::ListModelsRequest* request,
      v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* GetClusterInfo(
      grpc::CallbackServerContext* context,
      const v1::GetClusterInfoRequest* request,
      v1::GetClusterInfoResponse* response) override;

 private:
  // The tenant that calls.
  absl::StatusOr<std::string> Admit(const grpc::CallbackServerContext& context);
  // Everything that is checked before a request reaches the driver.
  absl::StatusOr<ClientRequest> Accept(
      const grpc::CallbackServerContext& context,
      const v1::GenerateRequest& request, std::shared_ptr<void>* slot);
  ServingPolicy CurrentPolicy() const;
  std::string NewLabel() const;
  absl::Status Tokenize(const v1::TokenizeRequest& request,
                        v1::TokenizeResponse* response) const;
  absl::Status Detokenize(const v1::DetokenizeRequest& request,
                          v1::DetokenizeResponse* response) const;

  const ServiceOptions options_;
  const PromptBuilder* const prompts_;
  RouterDriver* const driver_;
  const Authenticator authenticator_;
  OpenRequests open_requests_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_GENERATION_SERVICE_H_
