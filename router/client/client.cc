#include "router/client/client.h"

#include <chrono>

#include "common/base/strings.h"
#include "common/rpc/status.h"

namespace baton {
namespace {

constexpr Duration kUnaryDeadline = std::chrono::seconds(10);

std::chrono::system_clock::time_point WallDeadline(Duration deadline) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::microseconds>(deadline);
}

void Authorize(grpc::ClientContext* context, const std::string& header) {
  if (!header.empty()) context->AddMetadata("authorization", header);
}

template <class Response, class Request>
absl::StatusOr<Response> Call(
    v1::Generation::Stub* stub, const std::string& authorization,
    grpc::Status (v1::Generation::Stub::*method)(grpc::ClientContext*,
                                                 const Request&, Response*),
    const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(WallDeadline(kUnaryDeadline));
  Authorize(&context, authorization);
  Response response;
  const grpc::Status status = (stub->*method)(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response;
}

}  // namespace

GenerateStream::~GenerateStream() {
  if (finished_.has_value()) return;
  Cancel();
  Finish().IgnoreError();
}

std::optional<v1::GenerateEvent> GenerateStream::Next() {
  v1::GenerateEvent event;
  if (finished_.has_value() || !reader_->Read(&event)) return std::nullopt;
  return event;
}

absl::Status GenerateStream::Finish() {
  if (!finished_.has_value()) {
    while (Next().has_value()) {
    }
    finished_ = FromGrpcStatus(reader_->Finish());
  }
  return *finished_;
}

std::string GenerateStream::request_id() const {
  const auto& metadata = context_.GetServerInitialMetadata();
  const auto it = metadata.find("x-request-id");
  if (it == metadata.end()) return "";
  return std::string(it->second.data(), it->second.size());
}

void GenerateStream::Cancel() { context_.TryCancel(); }

Client::Client(const std::string& address, const ChannelOptions& channel,
               const std::string& api_token)
    : address_(address),
      authorization_(api_token.empty() ? "" : StrCat("Bearer ", api_token)),
      stub_(v1::Generation::NewStub(MakeChannel(address, channel))) {}

std::unique_ptr<GenerateStream> Client::Generate(
    const v1::GenerateRequest& request, const CallOptions& options) {
  std::unique_ptr<GenerateStream> stream(new GenerateStream);
  grpc::ClientContext& context = stream->context_;
  Authorize(&context, authorization_);
  if (options.deadline) context.set_deadline(WallDeadline(*options.deadline));
  if (!options.request_id.empty()) {
    context.AddMetadata("x-request-id", options.request_id);
  }
  if (!options.traceparent.empty()) {
    context.AddMetadata("traceparent", options.traceparent);
  }
  stream->reader_ = stub_->Generate(&context, request);
  return stream;
}

absl::StatusOr<v1::TokenizeResponse> Client::Tokenize(
    const v1::TokenizeRequest& request) {
  return Call(stub_.get(), authorization_, &v1::Generation::Stub::Tokenize,
              request);
}

absl::StatusOr<v1::DetokenizeResponse> Client::Detokenize(
    const v1::DetokenizeRequest& request) {
  return Call(stub_.get(), authorization_, &v1::Generation::Stub::Detokenize,
              request);
}

absl::StatusOr<v1::ListModelsResponse> Client::ListModels() {
  return Call(stub_.get(), authorization_, &v1::Generation::Stub::ListModels,
              v1::ListModelsRequest());
}

absl::StatusOr<v1::GetClusterInfoResponse> Client::GetClusterInfo() {
  return Call(stub_.get(), authorization_,
              &v1::Generation::Stub::GetClusterInfo,
              v1::GetClusterInfoRequest());
}

}  // namespace baton
