#include "router/front_door/authentication.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/base/strings.h"

namespace baton::router {
namespace {

// Ours, and those of gateways that choose a server for their clients.
constexpr std::string_view kWorkerHeaders[] = {
    "x-baton-decode-worker", "x-baton-prefill-worker",
    "x-baton-worker",        "x-gateway-destination-endpoint",
    "x-prefiller-host-port", "x-worker-instance-id"};

grpc::string_ref RefOf(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

std::string_view HeaderOf(const ClientMetadata& metadata,
                          std::string_view name) {
  const auto [begin, end] = metadata.equal_range(RefOf(name));
  if (begin == end || std::next(begin) != end) return "";
  return {begin->second.data(), begin->second.size()};
}

absl::Status MetadataLimit::Check(const ClientMetadata& metadata) {
  constexpr size_t kOverhead = 32;  // RFC 7541, 4.1
  size_t bytes = 0;
  for (const auto& [name, value] : metadata) {
    bytes += name.size() + value.size() + kOverhead;
  }
  if (bytes <= kMaxBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(StrCat(
      "metadata: too large (got ", bytes, " bytes, allowed ", kMaxBytes, ")"));
}

int WorkerHeaders(const ClientMetadata& metadata) {
  return static_cast<int>(std::count_if(
      std::begin(kWorkerHeaders), std::end(kWorkerHeaders),
      [&](std::string_view name) { return metadata.contains(RefOf(name)); }));
}

absl::StatusOr<std::string> Authenticator::TenantOf(
    const ClientMetadata& metadata) const {
  std::string tenant;
  if (tokens_ != nullptr) {
    std::optional<std::string> known = tokens_->tokens()->TenantOf(
        BearerToken(HeaderOf(metadata, "authorization")));
    if (!known.has_value()) {
      return absl::UnauthenticatedError(
          "authorization: not a known API token (allowed: Bearer TOKEN)");
    }
    tenant = *std::move(known);
  }
  const auto [begin, end] = metadata.equal_range(RefOf("x-baton-tenant"));
  const bool own = std::all_of(begin, end, [&](const auto& header) {
    return header.second == RefOf(tenant);
  });
  if (!own) {
    return absl::PermissionDeniedError(
        tokens_ == nullptr
            ? "x-baton-tenant: this router knows no tenants; it runs without "
              "API tokens"
            : "x-baton-tenant: not the tenant of the credential");
  }
  return tenant;
}

}  // namespace baton::router
