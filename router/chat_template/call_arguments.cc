#include "router/chat_template/call_arguments.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "router/chat_template/operations.h"

namespace baton::router {

absl::StatusOr<BoundArguments> BoundArguments::Bind(
    const CallArguments& arguments,
    std::initializer_list<std::string_view> parameters) {
  BoundArguments bound;
  bound.parameters_ = parameters;
  bound.values_.resize(parameters.size());
  if (arguments.positional.size() > parameters.size()) {
    return absl::InvalidArgumentError(
        StrCat("too many arguments (got ", arguments.positional.size(),
               ", allowed ", parameters.size(), ")"));
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    bound.values_[i] = arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    const auto it = std::find(parameters.begin(), parameters.end(), name);
    const size_t i = static_cast<size_t>(it - parameters.begin());
    if (it == parameters.end() || bound.values_[i].has_value()) {
      return absl::InvalidArgumentError(
          StrCat("unexpected argument '", name, "'"));
    }
    bound.values_[i] = value;
  }
  return bound;
}

absl::StatusOr<Value> BoundArguments::Required(size_t parameter) const {
  if (Has(parameter)) return *values_[parameter];
  return absl::InvalidArgumentError(
      StrCat("argument '", parameters_[parameter], "' is missing"));
}

absl::StatusOr<MarkedText> BoundArguments::Text(size_t parameter) const {
  BATON_ASSIGN_OR_RETURN(const Value value, Required(parameter));
  if (value.is_string()) return value.text();
  return WrongType(
      StrCat("argument '", parameters_[parameter], "' must be a string"),
      value);
}

absl::StatusOr<MarkedText> BoundArguments::TextOr(
    size_t parameter, std::string_view otherwise) const {
  if (Has(parameter)) return Text(parameter);
  return MarkedText(std::string(otherwise));
}

absl::StatusOr<int64_t> BoundArguments::IntegerOr(size_t parameter,
                                                  int64_t otherwise) const {
  if (!Has(parameter)) return otherwise;
  const Value& value = *values_[parameter];
  if (value.is_integer() || value.is_bool()) return value.integer();
  return WrongType(
      StrCat("argument '", parameters_[parameter], "' must be an integer"),
      value);
}

}  // namespace baton::router
