#ifndef BATON_ROUTER_FRONT_DOOR_AUTHENTICATION_H_
#define BATON_ROUTER_FRONT_DOOR_AUTHENTICATION_H_

#include <grpcpp/support/string_ref.h>

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "router/credentials/api_token_file.h"

namespace baton::router {

using ClientMetadata = std::multimap<grpc::string_ref, grpc::string_ref>;

// The value of a header, or "" when it is absent or given twice.
std::string_view HeaderOf(const ClientMetadata& metadata,
                          std::string_view name);

// RESOURCE_EXHAUSTED when the headers of a call are larger than kMaxBytes
// together, counted as in HTTP/2. gRPC's own limit, which ends the connection
// of all calls with the one, must be larger.
class MetadataLimit {
 public:
  static constexpr size_t kMaxBytes = 16 << 10;
  static constexpr int kConnectionBytes = 128 << 10;  // for gRPC
  static absl::Status Check(const ClientMetadata& metadata);
};

// How many headers try to tell the router which worker to use. No client may:
// they are counted and otherwise ignored.
int WorkerHeaders(const ClientMetadata& metadata);

// Who calls, from the call's `authorization: Bearer TOKEN`. Thread-safe.
class Authenticator {
 public:
  // Without `tokens` nobody needs a credential, and everybody is tenant "".
  // They outlive the object.
  explicit Authenticator(const ApiTokenFile* tokens) : tokens_(tokens) {}

  // The tenant. UNAUTHENTICATED, with the same text and after the same work,
  // for a credential that is missing and for one that is wrong;
  // PERMISSION_DENIED when x-baton-tenant names another tenant.
  absl::StatusOr<std::string> TenantOf(const ClientMetadata& metadata) const;

  bool required() const { return tokens_ != nullptr; }

 private:
  const ApiTokenFile* const tokens_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_AUTHENTICATION_H_
