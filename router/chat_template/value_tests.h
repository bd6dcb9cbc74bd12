#ifndef BATON_ROUTER_CHAT_TEMPLATE_VALUE_TESTS_H_
#define BATON_ROUTER_CHAT_TEMPLATE_VALUE_TESTS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "router/chat_template/budget.h"
#include "router/chat_template/call_arguments.h"
#include "router/chat_template/value.h"

namespace baton::router {

// Jinja's tests: `value is name(arguments)`.
bool IsValueTest(std::string_view name);

// Requires IsValueTest(name).
absl::StatusOr<bool> ApplyTest(std::string_view name, const Value& value,
                               const CallArguments& arguments, Budget& budget);

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_VALUE_TESTS_H_
