#ifndef BATON_ROUTER_CHAT_TEMPLATE_TEXT_WRITER_H_
#define BATON_ROUTER_CHAT_TEMPLATE_TEXT_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "router/chat_template/budget.h"
#include "router/chat_template/value.h"

namespace baton::router {

// Python's shortest float: "0.1", "1.0", "1e+30", "inf".
std::string PythonFloat(double value);

// str(value): what an output tag prints. Strings within containers are quoted
// as repr does. Undefined prints as nothing.
absl::StatusOr<MarkedText> ToText(const Value& value, Budget& budget);

// json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=sort_keys).
// INVALID_ARGUMENT for values that JSON has not.
absl::StatusOr<MarkedText> ToJson(const Value& value,
                                  std::optional<int64_t> indent, bool sort_keys,
                                  Budget& budget);

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_TEXT_WRITER_H_
