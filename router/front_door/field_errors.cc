#include "router/front_door/field_errors.h"

#include "absl/strings/escaping.h"
#include "common/base/strings.h"
#include "common/rpc/status.h"

namespace baton::router {
namespace {

constexpr int kMaxShown = 16;
constexpr size_t kMaxQuotedBytes = 64;

// An index may be a token id: "sampling.logit_bias[7]" names no token.
std::string WithoutIndices(std::string_view field) {
  std::string text;
  bool inside = false;
  for (const char c : field) {
    if (c == ']') inside = false;
    if (!inside) text += c;
    if (c == '[') inside = true;
  }
  return text;
}

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

std::string DescribeForLog(const absl::Status& status) {
  if (status.ok()) return "OK";
  std::string text = absl::StatusCodeToString(status.code());
  if (status.code() != absl::StatusCode::kInvalidArgument) {
    StrAppend(&text, ": ", ToStd(status.message()));
    return text;
  }
  std::string_view separator = ": ";
  for (const FieldViolation& violation : FieldViolations(status)) {
    StrAppend(&text, separator, WithoutIndices(violation.field));
    separator = ", ";
  }
  return text;
}

std::string Quoted(std::string_view text) {
  const bool cut = text.size() > kMaxQuotedBytes;
  return StrCat("'", absl::CHexEscape(ToAbsl(text.substr(0, kMaxQuotedBytes))),
                cut ? "..." : "", "'");
}

}  // namespace baton::router
