#include "common/rpc/status.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/cord.h"
#include "common/base/check.h"
#include "common/base/strings.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace baton {
namespace {

constexpr size_t kMaxMessageBytes = 2048;
constexpr size_t kMaxDetailBytes = 4096;
constexpr char kBadRequestUrl[] = "type.googleapis.com/google.rpc.BadRequest";
constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr int64_t kNanosPerSecond = 1'000'000'000;

std::string CutMessage(absl::string_view message) {
  size_t end = std::min(message.size(), kMaxMessageBytes);
  if (end < message.size()) {
    while (end > 0 && (message[end] & 0xc0) == 0x80) --end;
  }
  return std::string(message.substr(0, end));
}

template <class Message>
Message ReadPayload(const absl::Status& status, const char* url) {
  Message message;
  const auto payload = status.GetPayload(url);
  if (!payload.has_value() || !message.ParseFromString(std::string(*payload))) {
    message.Clear();
  }
  return message;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message = CutMessage(status.message());
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(message);
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    auto* any = details.add_details();
    any->set_type_url(std::string(url));
    any->set_value(std::string(value));
  });
  const auto code = static_cast<grpc::StatusCode>(status.code());
  if (details.details().empty() || details.ByteSizeLong() > kMaxDetailBytes) {
    return grpc::Status(code, message);
  }
  return grpc::Status(code, message, details.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = status.error_code();
  const bool known = code > 0 && code <= 16;
  absl::Status result(
      known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
      status.error_message());
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    for (const auto& any : details.details()) {
      result.SetPayload(any.type_url(), absl::Cord(any.value()));
    }
  }
  return result;
}

void AddFieldViolation(absl::Status* status, std::string_view field,
                       std::string_view description) {
  BATON_CHECK(!status->ok());
  auto request = ReadPayload<google::rpc::BadRequest>(*status, kBadRequestUrl);
  auto* violation = request.add_field_violations();
  violation->set_field(std::string(field));
  violation->set_description(std::string(description));
  status->SetPayload(kBadRequestUrl, absl::Cord(request.SerializeAsString()));
}

std::vector<FieldViolation> FieldViolations(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  const auto request =
      ReadPayload<google::rpc::BadRequest>(status, kBadRequestUrl);
  for (const auto& violation : request.field_violations()) {
    violations.push_back({violation.field(), violation.description()});
  }
  return violations;
}

void AddRetryInfo(absl::Status* status, Duration delay) {
  BATON_CHECK(!status->ok());
  BATON_CHECK(delay >= Duration::zero());
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(delay.count() / kNanosPerSecond);
  info.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>(delay.count() % kNanosPerSecond));
  status->SetPayload(kRetryInfoUrl, absl::Cord(info.SerializeAsString()));
}

std::optional<Duration> RetryDelay(const absl::Status& status) {
  if (!status.GetPayload(kRetryInfoUrl).has_value()) return std::nullopt;
  const auto info = ReadPayload<google::rpc::RetryInfo>(status, kRetryInfoUrl);
  const int64_t seconds = info.retry_delay().seconds();
  const int64_t nanos = info.retry_delay().nanos();
  constexpr int64_t kMaxSeconds = 86'400;
  if (seconds < 0 || nanos < 0 || nanos >= kNanosPerSecond) {
    return Duration::zero();
  }
  return std::chrono::seconds(std::min(seconds, kMaxSeconds)) + Duration(nanos);
}

absl::Status InvalidField(std::string_view field,
                          std::string_view description) {
  absl::Status status =
      absl::InvalidArgumentError(StrCat(field, ": ", description));
  AddFieldViolation(&status, field, description);
  return status;
}

}  // namespace baton
