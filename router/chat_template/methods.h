#ifndef BATON_ROUTER_CHAT_TEMPLATE_METHODS_H_
#define BATON_ROUTER_CHAT_TEMPLATE_METHODS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "router/chat_template/budget.h"
#include "router/chat_template/call_arguments.h"
#include "router/chat_template/value.h"

namespace baton::router {

// The methods of Python's str, dict and list that change nothing.
bool HasMethod(const Value& receiver, std::string_view name);

// Requires HasMethod(receiver, name).
absl::StatusOr<Value> CallMethod(std::string_view name, const Value& receiver,
                                 const CallArguments& arguments,
                                 Budget& budget);

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_METHODS_H_
