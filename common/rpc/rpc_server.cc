#include "common/rpc/rpc_server.h"

#include <grpcpp/health_check_service_interface.h>

#include <chrono>
#include <utility>

#include "common/base/host_port.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/rpc/grpc_log.h"
#include "common/rpc/reflection.h"
#include "common/rpc/tls_options.h"

namespace baton {
namespace {

constexpr int kMinClientPingMs = 5000;

void EnableHealthServiceOnce() {
  static const bool done = [] {
    grpc::EnableDefaultHealthCheckService(true);
    return true;
  }();
  static_cast<void>(done);
}

// A message of 16 MiB may hold 16 GiB of zeros.
void RefuseCompression(grpc::ServerBuilder* builder) {
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

int ToMs(Duration d) { return static_cast<int>(Milliseconds(d)); }

}  // namespace

RpcServer::RpcServer(std::unique_ptr<grpc::Server> server, std::string address)
    : server_(std::move(server)), address_(std::move(address)) {}

RpcServer::~RpcServer() { Shutdown(Duration::zero()); }

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const ListenOptions& options, const std::vector<grpc::Service*>& services) {
  BATON_ASSIGN_OR_RETURN(HostPort address, ParseHostPort(options.address));
  BATON_RETURN_IF_ERROR(CheckPlainText("", options.address,
                                       options.tls != nullptr,
                                       options.insecure_any_address));
  RouteGrpcLog();
  EnableHealthServiceOnce();
  if (options.reflection && !ReflectionServed()) {
    return absl::FailedPreconditionError(
        "reflection: not in this build (it needs BATON_REFLECTION)");
  }

  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address.ToString(),
                           options.tls == nullptr
                               ? grpc::InsecureServerCredentials()
                               : options.tls->ForServer(options.admitted),
                           &port);
  builder.SetMaxReceiveMessageSize(options.max_message_bytes);
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                             options.max_metadata_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             options.max_concurrent_streams);
  RefuseCompression(&builder);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS,
                             ToMs(options.keepalive_time));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             ToMs(options.keepalive_timeout));
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinClientPingMs);
  if (options.stream_window_bytes > 0) {
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                               options.stream_window_bytes);
  }
  for (grpc::Service* service : services) builder.RegisterService(service);

  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    BATON_RETURN_IF_ERROR(ListenError(address));
    return absl::UnavailableError(
        StrCat(address.ToString(), ": cannot listen"));
  }
  address.port = static_cast<uint16_t>(port);
  std::unique_ptr<RpcServer> result(
      new RpcServer(std::move(server), address.ToString()));
  result->SetServing("", false);
  return result;
}

void RpcServer::SetServing(const std::string& service, bool serving) {
  if (auto* health = server_->GetHealthCheckService(); health != nullptr) {
    health->SetServingStatus(service, serving);
  }
}

void RpcServer::Shutdown(Duration grace) {
  if (auto* health = server_->GetHealthCheckService(); health != nullptr) {
    health->Shutdown();
  }
  server_->Shutdown(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::microseconds>(grace));
  server_->Wait();
}

}  // namespace baton
