#ifndef BATON_ROUTER_CHAT_TEMPLATE_FILTERS_H_
#define BATON_ROUTER_CHAT_TEMPLATE_FILTERS_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "router/chat_template/budget.h"
#include "router/chat_template/call_arguments.h"
#include "router/chat_template/value.h"

namespace baton::router {

// Jinja's filters: value|name(arguments). tojson is that of Hugging Face's
// chat templates (no HTML escapes). `filters.cc` has those of single values,
// `list_filters.cc` those of lists.
using Filter = absl::StatusOr<Value> (*)(const Value&, const CallArguments&,
                                         Budget&);

bool IsFilter(std::string_view name);

// Unknown names (which come from map() and the like) are INVALID_ARGUMENT.
absl::StatusOr<Value> ApplyFilter(std::string_view name, const Value& value,
                                  const CallArguments& arguments,
                                  Budget& budget);

// nullptr when it is no filter of lists.
Filter FindListFilter(std::string_view name);

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_FILTERS_H_
