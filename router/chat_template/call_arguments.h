#ifndef BATON_ROUTER_CHAT_TEMPLATE_CALL_ARGUMENTS_H_
#define BATON_ROUTER_CHAT_TEMPLATE_CALL_ARGUMENTS_H_

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "router/chat_template/value.h"

namespace baton::router {

// Evaluated arguments of a call, filter or test.
struct CallArguments {
  ValueList positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Arguments by parameter, as Python binds them.
class BoundArguments {
 public:
  // INVALID_ARGUMENT for too many, unknown or doubled arguments.
  static absl::StatusOr<BoundArguments> Bind(
      const CallArguments& arguments,
      std::initializer_list<std::string_view> parameters);

  bool Has(size_t parameter) const { return values_[parameter].has_value(); }
  Value ValueOr(size_t parameter, Value otherwise) const {
    return Has(parameter) ? *values_[parameter] : std::move(otherwise);
  }
  // Each: INVALID_ARGUMENT when the argument has another type (the first two:
  // or is missing).
  absl::StatusOr<MarkedText> Text(size_t parameter) const;
  absl::StatusOr<Value> Required(size_t parameter) const;
  absl::StatusOr<MarkedText> TextOr(size_t parameter,
                                    std::string_view otherwise) const;
  absl::StatusOr<int64_t> IntegerOr(size_t parameter, int64_t otherwise) const;
  bool FlagOr(size_t parameter, bool otherwise) const {
    return Has(parameter) ? values_[parameter]->truthy() : otherwise;
  }

 private:
  std::vector<std::string_view> parameters_;
  std::vector<std::optional<Value>> values_;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_CHAT_TEMPLATE_CALL_ARGUMENTS_H_
