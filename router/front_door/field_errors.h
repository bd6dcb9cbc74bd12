#ifndef BATON_ROUTER_FRONT_DOOR_FIELD_ERRORS_H_
#define BATON_ROUTER_FRONT_DOOR_FIELD_ERRORS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace baton::router {

// Collects everything that is wrong with a request, so that the client learns
// all of it at once. Keeps the first 16 violations and counts the rest.
class FieldErrors {
 public:
  void Add(std::string_view field, std::string_view description);
  // "FIELD: WHAT (got GOT, allowed ALLOWED)".
  void Add(std::string_view field, std::string_view what, std::string_view got,
           std::string_view allowed);

  int count() const { return count_; }
  bool empty() const { return count_ == 0; }
  // OK, or INVALID_ARGUMENT "field: description; field: description" with
  // google.rpc.BadRequest.
  absl::Status ToStatus() const;

 private:
  absl::Status status_ = absl::InvalidArgumentError("");
  std::string message_;
  int count_ = 0;
};

// How a status goes into a log: INVALID_ARGUMENT as "INVALID_ARGUMENT: FIELD,
// FIELD" without what the client sent (descriptions quote it), everything else
// with its message.
std::string DescribeForLog(const absl::Status& status);

// What a client sent, safe to show: quoted, escaped, at most 64 bytes.
std::string Quoted(std::string_view text);

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_FIELD_ERRORS_H_
