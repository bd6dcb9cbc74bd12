#ifndef BATON_COMMON_BASE_STRINGS_H_
#define BATON_COMMON_BASE_STRINGS_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace baton {

// Where absl was built for C++14 its string_view is a type of its own; these
// cross the border without a copy.
inline absl::string_view ToAbsl(std::string_view text) {
  return absl::string_view(text.data(), text.size());
}
inline std::string_view ToStd(absl::string_view text) {
  return std::string_view(text.data(), text.size());
}

namespace internal {

template <class T>
decltype(auto) StrCatArgument(const T& value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return ToAbsl(value);
  } else {
    return (value);
  }
}

}  // namespace internal

// absl::StrCat and absl::StrAppend that take std::string_view too.
template <class... Args>
std::string StrCat(const Args&... args) {
  return absl::StrCat(internal::StrCatArgument(args)...);
}

template <class... Args>
void StrAppend(std::string* destination, const Args&... args) {
  absl::StrAppend(destination, internal::StrCatArgument(args)...);
}

}  // namespace baton

#endif  // BATON_COMMON_BASE_STRINGS_H_
