#ifndef BATON_ROUTER_FRONT_DOOR_GENERATION_SERVICE_H_
#define BATON_ROUTER_FRONT_DOOR_GENERATION_SERVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "proto/generation.grpc.pb.h"
#include "router/front_door/prompt_builder.h"
#include "router/front_door/request_validation.h"
#include "router/front_door/router_driver.h"

namespace baton::router {

struct ServiceOptions {
  ServingPolicy policy;
  // Of requests without a deadline of their own, and the longest allowed.
  Duration max_deadline = std::chrono::minutes(10);
  int64_t created_unix_s = 0;  // of the model card
};

// baton.v1.Generation. Thread-safe.
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
  ServingPolicy CurrentPolicy() const;
  std::string NewLabel() const;
  absl::Status Tokenize(const v1::TokenizeRequest& request,
                        v1::TokenizeResponse* response) const;
  absl::Status Detokenize(const v1::DetokenizeRequest& request,
                          v1::DetokenizeResponse* response) const;

  const ServiceOptions options_;
  const PromptBuilder* const prompts_;
  RouterDriver* const driver_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_GENERATION_SERVICE_H_
