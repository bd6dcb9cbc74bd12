#ifndef BATON_ROUTER_FRONT_DOOR_CALL_METADATA_H_
#define BATON_ROUTER_FRONT_DOOR_CALL_METADATA_H_

#include <optional>
#include <string>
#include <string_view>

namespace baton::router {

// The client's x-request-id if it is 1..128 visible ASCII characters, else
// nothing. It is a label for people; requests are told apart by our own ids.
std::optional<std::string> AcceptRequestLabel(std::string_view value);

// A W3C traceparent header as it is if it is well-formed (version 00:
// "00-<32 hex>-<16 hex>-<2 hex>", neither id all zero), else "".
std::string AcceptTraceparent(std::string_view value);

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_CALL_METADATA_H_
