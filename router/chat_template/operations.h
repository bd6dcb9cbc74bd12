#ifndef BATON_ROUTER_CHAT_TEMPLATE_OPERATIONS_H_
#define BATON_ROUTER_CHAT_TEMPLATE_OPERATIONS_H_

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "router/chat_template/budget.h"
#include "router/chat_template/value.h"

namespace baton::router {

// Python's operators on values. INVALID_ARGUMENT carries what Python would
// say, without a line; RESOURCE_EXHAUSTED is the budget's.

// "'x' is undefined" for Undefined, else "what (got type)".
absl::Status WrongType(std::string_view what, const Value& value);

absl::StatusOr<bool> Equal(const Value& a, const Value& b, Budget& budget);
// Numbers with numbers, strings with strings, lists with lists.
absl::StatusOr<bool> Less(const Value& a, const Value& b, Budget& budget);
// `needle in haystack`.
absl::StatusOr<bool> Contains(const Value& haystack, const Value& needle,
                              Budget& budget);

// op is one of + - * / // % **.
absl::StatusOr<Value> Arithmetic(std::string_view op, const Value& a,
                                 const Value& b, Budget& budget);

// What a for statement visits: items, keys, characters, nothing for Undefined.
absl::StatusOr<ValueList> Iterate(const Value& value, Budget& budget);
absl::StatusOr<int64_t> Length(const Value& value);

// The value of a dict's key, nullopt when there is none.
absl::StatusOr<std::optional<Value>> Lookup(const Value& dict, const Value& key,
                                            Budget& budget);
// value[key] of dicts, lists and strings; Undefined when there is none.
absl::StatusOr<Value> Subscript(const Value& value, const Value& key,
                                Budget& budget);
// value[start:stop:step]; None where left out.
absl::StatusOr<Value> Slice(const Value& value, const Value& start,
                            const Value& stop, const Value& step,
                            Budget& budget);

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_OPERATIONS_H_
