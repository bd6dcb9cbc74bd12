#ifndef BATON_ROUTER_FRONT_DOOR_WIRE_MESSAGE_H_
#define BATON_ROUTER_FRONT_DOOR_WIRE_MESSAGE_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace baton::router {

// Reads what a client sent. gRPC would end a call whose request it cannot read
// as UNIMPLEMENTED without a word; here it is INVALID_ARGUMENT, `FIELD: invalid
// UTF-8 at byte N` when that was the reason, with google.rpc.BadRequest.
absl::Status ReadMessage(const grpc::ByteBuffer& bytes,
                         google::protobuf::Message* message);

grpc::ByteBuffer WriteMessage(const google::protobuf::Message& message);

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_WIRE_MESSAGE_H_
