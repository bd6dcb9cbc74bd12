#ifndef BATON_COMMON_RPC_STATUS_H_
#define BATON_COMMON_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/base/monotonic_time.h"

namespace baton {

// The same code and message. Payloads of the absl status become the details of
// a google.rpc.Status and back (payload URL = Any.type_url), so that clients in
// any language can read them. Messages over 2 KiB are cut at a code point and
// details over 4 KiB are dropped, so that a status always fits the trailing
// metadata. Undecodable details are ignored. Codes outside 0..16 are Unknown.
grpc::Status ToGrpcStatus(const absl::Status& status);
absl::Status FromGrpcStatus(const grpc::Status& status);

// One wrong field of a request, as google.rpc.BadRequest carries it.
struct FieldViolation {
  std::string field;        // "sampling.top_p", "chat.messages[3].role"
  std::string description;  // what was given and what is allowed
  friend bool operator==(const FieldViolation&,
                         const FieldViolation&) = default;
};

// `status` must not be OK. Appends to the violations already there.
void AddFieldViolation(absl::Status* status, std::string_view field,
                       std::string_view description);
std::vector<FieldViolation> FieldViolations(const absl::Status& status);

// When the client may try again (google.rpc.RetryInfo). `status` must not be
// OK; `delay` must not be negative.
void AddRetryInfo(absl::Status* status, Duration delay);
std::optional<Duration> RetryDelay(const absl::Status& status);

// InvalidArgument "field: description" with the violation attached.
absl::Status InvalidField(std::string_view field, std::string_view description);

}  // namespace baton

#endif  // BATON_COMMON_RPC_STATUS_H_
