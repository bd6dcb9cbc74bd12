#include "common/rpc/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace baton {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(StatusTest, EveryCodeRoundTrips) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "text");
    const grpc::Status wire = ToGrpcStatus(status);
    EXPECT_EQ(wire.error_code(), code);
    EXPECT_EQ(wire.error_message(), "text");
    EXPECT_EQ(FromGrpcStatus(wire), status);
  }
}

TEST(StatusTest, UnknownCodesBecomeUnknown) {
  const grpc::Status odd(static_cast<grpc::StatusCode>(17), "odd");
  EXPECT_EQ(FromGrpcStatus(odd), absl::UnknownError("odd"));
}

TEST(StatusTest, FieldViolationsTravelInOrder) {
  absl::Status status = InvalidField("n", "got 9, allowed 1..8");
  AddFieldViolation(&status, "top_p", "got 2, allowed (0, 1]");
  const absl::Status received = FromGrpcStatus(ToGrpcStatus(status));
  EXPECT_EQ(received.message(), "n: got 9, allowed 1..8");
  EXPECT_THAT(FieldViolations(received),
              ElementsAre(FieldViolation{"n", "got 9, allowed 1..8"},
                          FieldViolation{"top_p", "got 2, allowed (0, 1]"}));
  EXPECT_THAT(FieldViolations(absl::InternalError("x")), IsEmpty());
}

TEST(StatusTest, WireFormIsGoogleRpcStatus) {
  const grpc::Status wire = ToGrpcStatus(InvalidField("n", "bad"));
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(wire.error_details()));
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(), "n: bad");
  ASSERT_EQ(details.details_size(), 1);
  google::rpc::BadRequest request;
  ASSERT_TRUE(details.details(0).UnpackTo(&request));
  EXPECT_EQ(request.field_violations(0).field(), "n");
}

TEST(StatusTest, RetryInfoTravels) {
  absl::Status status = absl::ResourceExhaustedError("queue is full");
  EXPECT_FALSE(RetryDelay(status).has_value());
  AddRetryInfo(&status, milliseconds(1500));
  EXPECT_EQ(RetryDelay(FromGrpcStatus(ToGrpcStatus(status))),
            milliseconds(1500));
}

TEST(StatusTest, HostileRetryInfoIsBounded) {
  const auto delay = [](int64_t seconds, int32_t nanos) {
    google::rpc::RetryInfo info;
    info.mutable_retry_delay()->set_seconds(seconds);
    info.mutable_retry_delay()->set_nanos(nanos);
    google::rpc::Status details;
    details.add_details()->PackFrom(info);
    return *RetryDelay(FromGrpcStatus(grpc::Status(
        grpc::StatusCode::UNAVAILABLE, "", details.SerializeAsString())));
  };
  EXPECT_EQ(delay(INT64_MAX, 0), std::chrono::hours(24));
  EXPECT_EQ(delay(INT64_MIN, 0), Duration::zero());
  EXPECT_EQ(delay(1, -5), Duration::zero());
  EXPECT_EQ(delay(1, 2'000'000'000), Duration::zero());
}

TEST(StatusTest, GarbageDetailsAreIgnored) {
  const grpc::Status wire(grpc::StatusCode::INTERNAL, "m", "\xff\xff\xff");
  EXPECT_EQ(FromGrpcStatus(wire), absl::InternalError("m"));
}

TEST(StatusTest, FitsTheTrailersWhateverIsInside) {
  absl::Status status = absl::InvalidArgumentError(
      std::string(2047, 'a') + "\xc3\xa9" + std::string(100'000, 'b'));
  for (int i = 0; i < 1000; ++i) AddFieldViolation(&status, "field", "bad");
  const grpc::Status wire = ToGrpcStatus(status);
  EXPECT_EQ(wire.error_message(), std::string(2047, 'a'));
  EXPECT_EQ(wire.error_details(), "");
}

}  // namespace
}  // namespace baton
