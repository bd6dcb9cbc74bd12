#include <chrono>
#include <cstdio>

#include "absl/strings/match.h"
#include "common/base/strings.h"
#include "common/config/config_values.h"
#include "common/rpc/status.h"
#include "router/client/cli/command.h"
#include "router/client/cli/terminal.h"

namespace baton::cli {
namespace {

bool NobodyListens(const absl::Status& status) {
  for (const char* sign :
       {"failed to connect", "Connection refused", "DNS resolution failed"}) {
    if (absl::StrContains(status.message(), sign)) return true;
  }
  return false;
}

// A router with TLS drops plain text; one without cannot shake hands.
bool NoHandshake(const absl::Status& status) {
  for (const char* sign : {"handshake", "Socket closed", "WRONG_VERSION",
                           "Cannot check peer", "connection attempt timed"}) {
    if (absl::StrContains(status.message(), sign)) return true;
  }
  return false;
}

std::string NextStep(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return "see which workers are ready with: baton status";
    case absl::StatusCode::kDeadlineExceeded:
      return "give it more time with --timeout, or see the load with: "
             "baton status";
    case absl::StatusCode::kResourceExhausted:
      return "try again later, or see the load with: baton status";
    case absl::StatusCode::kNotFound:
      return "see what is served with: baton status";
    case absl::StatusCode::kUnauthenticated:
      return "give the token of your tenant with --api-token-file or the "
             "variable BATON_API_TOKEN";
    case absl::StatusCode::kUnimplemented:
      return "this is not a Baton router, or one of another version";
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnknown:
      return "the logs of the router and the workers say more (baton up keeps "
             "them with --log-dir)";
    default:
      return "";
  }
}

}  // namespace

std::string Advice(const absl::Status& status, const std::string& address) {
  if (status.code() == absl::StatusCode::kUnavailable && NoHandshake(status)) {
    return StrCat("no secure connection to the router at ", address, ": ",
                  Printable(ToStd(status.message())),
                  "\nboth sides need TLS or neither: --tls-ca, and --tls-cert "
                  "with --tls-key where the router asks for a certificate");
  }
  if (status.code() == absl::StatusCode::kUnavailable &&
      NobodyListens(status)) {
    return StrCat("no router at ", address, "; start one with: baton up");
  }
  std::string text = StrCat(absl::StatusCodeToString(status.code()), ": ",
                            Printable(ToStd(status.message())));
  for (const FieldViolation& violation : FieldViolations(status)) {
    const std::string line =
        StrCat(violation.field, ": ", violation.description);
    if (line == status.message()) continue;
    StrAppend(&text, "\n  ", Printable(line));
  }
  if (const auto delay = RetryDelay(status)) {
    StrAppend(
        &text, "\ntry again in ",
        FormatDuration(std::chrono::ceil<std::chrono::milliseconds>(*delay)));
  }
  const std::string next = NextStep(status);
  if (!next.empty()) StrAppend(&text, "\n", next);
  return text;
}

int Fail(const absl::Status& status, const std::string& address) {
  std::fflush(stdout);
  std::fprintf(stderr, "baton: %s\n", Advice(status, address).c_str());
  switch (status.code()) {
    case absl::StatusCode::kCancelled:
      return 130;
    case absl::StatusCode::kInvalidArgument:
      return 2;
    default:
      return 1;
  }
}

}  // namespace baton::cli
