#include "router/front_door/wire_message.h"

#include <gtest/gtest.h>

#include "common/rpc/status.h"
#include "proto/generation.pb.h"

namespace baton::router {
namespace {

grpc::ByteBuffer Bytes(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

TEST(WireMessageTest, WhatIsWrittenIsRead) {
  v1::GenerateRequest request;
  request.mutable_chat()->add_messages()->set_content("\xc3\xa4");
  request.set_n(3);
  v1::GenerateRequest read;
  ASSERT_TRUE(ReadMessage(WriteMessage(request), &read).ok());
  EXPECT_EQ(read.SerializeAsString(), request.SerializeAsString());
  EXPECT_TRUE(ReadMessage(Bytes(""), &read).ok()) << "all fields absent";
  EXPECT_TRUE(ReadMessage(grpc::ByteBuffer(), &read).ok() ||
              !grpc::ByteBuffer().Valid());
}

TEST(WireMessageTest, InvalidTextIsNamed) {
  v1::GenerateRequest request;
  auto* chat = request.mutable_chat();
  chat->add_messages()->set_content("good");
  chat->add_messages()->set_content("go\xff");
  v1::GenerateRequest read;
  const absl::Status status = ReadMessage(WriteMessage(request), &read);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "chat.messages[1].content: invalid UTF-8 at byte 2");
  ASSERT_EQ(FieldViolations(status).size(), 1u);
  EXPECT_EQ(FieldViolations(status)[0].field, "chat.messages[1].content");
}

TEST(WireMessageTest, OtherBytesAreNoMessage) {
  v1::GenerateRequest read;
  const auto error = [&](const std::string& bytes) {
    return std::string(ReadMessage(Bytes(bytes), &read).message());
  };
  EXPECT_EQ(error("\xff\xff\xff"),
            "request: not a baton.v1.GenerateRequest (got 3 bytes)");
  EXPECT_EQ(error("\x12\x7f"
                  "cut"),
            "request: not a baton.v1.GenerateRequest (got 5 bytes)");
  // A chat whose inside is broken.
  EXPECT_EQ(error("\x22\x02\x0a\x7f"),
            "request: not a baton.v1.GenerateRequest (got 4 bytes)");
}

}  // namespace
}  // namespace baton::router
