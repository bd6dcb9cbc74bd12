#ifndef BATON_ROUTER_CLIENT_CLIENT_H_
#define BATON_ROUTER_CLIENT_CLIENT_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/monotonic_time.h"
#include "common/rpc/channel.h"
#include "proto/generation.grpc.pb.h"

namespace baton {

struct CallOptions {
  // Enforced by both ends; absent = the router's own maximum.
  std::optional<Duration> deadline = std::nullopt;
  std::string request_id =
      {};  // sent as x-request-id; empty = the router's choice
  std::string traceparent = {};  // W3C trace context, passed on as it is
};

// One running Generate call. Destroying it cancels the call.
//
//   auto stream = client.Generate(request, {});
//   while (auto event = stream->Next()) Show(*event);
//   absl::Status status = stream->Finish();
class GenerateStream {
 public:
  ~GenerateStream();
  GenerateStream(const GenerateStream&) = delete;
  GenerateStream& operator=(const GenerateStream&) = delete;

  // Blocks until the next event; nothing once the stream has ended.
  std::optional<v1::GenerateEvent> Next();
  // How the call ended, with google.rpc details as payloads (see
  // common/rpc/status.h). Reads and drops events that are left. Idempotent.
  absl::Status Finish();
  // The x-request-id that the router answered with; empty before the first
  // Next() and when it sent none.
  std::string request_id() const;

  // Ends the call: Next() returns nothing soon and Finish() is Cancelled.
  // Thread-safe.
  void Cancel();

 private:
  friend class Client;
  GenerateStream() = default;

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateEvent>> reader_;
  std::optional<absl::Status> finished_;
};

// A connection to one router. All calls block; errors carry their details.
// Thread-safe.
class Client {
 public:
  // host:port. Connects with the first call. `api_token`, unless empty, goes
  // with every call.
  explicit Client(const std::string& address,
                  const ChannelOptions& channel = {},
                  const std::string& api_token = "");

  const std::string& address() const { return address_; }

  std::unique_ptr<GenerateStream> Generate(const v1::GenerateRequest& request,
                                           const CallOptions& options = {});
  absl::StatusOr<v1::TokenizeResponse> Tokenize(
      const v1::TokenizeRequest& request);
  absl::StatusOr<v1::DetokenizeResponse> Detokenize(
      const v1::DetokenizeRequest& request);
  absl::StatusOr<v1::ListModelsResponse> ListModels();
  absl::StatusOr<v1::GetClusterInfoResponse> GetClusterInfo();

 private:
  const std::string address_;
  const std::string authorization_;  // header; empty: none
  const std::unique_ptr<v1::Generation::Stub> stub_;
};

}  // namespace baton

#endif  // BATON_ROUTER_CLIENT_CLIENT_H_
