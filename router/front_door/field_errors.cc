#include "router/front_door/field_errors.h"

#include "absl/strings/escaping.h"
#include "common/base/strings.h"
#include "common/rpc/status.h"

namespace baton::router {
namespace {

constexpr int kMaxShown = 16;
constexpr size_t kMaxQuotedBytes = 64;

}  // namespace

void FieldErrors::Add(std::string_view field, std::string_view description) {
  if (++count_ > kMaxShown) return;
  if (!message_.empty()) message_ += "; ";
  StrAppend(&message_, field, ": ", description);
  AddFieldViolation(&status_, field, description);
}

void FieldErrors::Add(std::string_view field, std::string_view what,
                      std::string_view got, std::string_view allowed) {
  Add(field, StrCat(what, " (got ", got, ", allowed ", allowed, ")"));
}

absl::Status FieldErrors::ToStatus() const {
  if (empty()) return absl::OkStatus();
  std::string message = message_;
  if (count_ > kMaxShown) {
    StrAppend(&message, "; and ", count_ - kMaxShown, " more");
  }
  absl::Status status = absl::InvalidArgumentError(message);
  for (const FieldViolation& violation : FieldViolations(status_)) {
    AddFieldViolation(&status, violation.field, violation.description);
  }
  return status;
}

std::string Quoted(std::string_view text) {
  const bool cut = text.size() > kMaxQuotedBytes;
  return StrCat("'", absl::CHexEscape(ToAbsl(text.substr(0, kMaxQuotedBytes))),
                cut ? "..." : "", "'");
}

}  // namespace baton::router
