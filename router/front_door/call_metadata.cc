#include "router/front_door/call_metadata.h"

#include <algorithm>

namespace baton::router {
namespace {

constexpr size_t kMaxLabelBytes = 128;
constexpr std::string_view kHex = "0123456789abcdef";

bool IsId(std::string_view text) {
  return text.find_first_not_of(kHex) == std::string_view::npos &&
         text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

std::optional<std::string> AcceptRequestLabel(std::string_view value) {
  const bool good = !value.empty() && value.size() <= kMaxLabelBytes &&
                    std::all_of(value.begin(), value.end(),
                                [](char c) { return c > ' ' && c <= '~'; });
  if (!good) return std::nullopt;
  return std::string(value);
}

std::string AcceptTraceparent(std::string_view value) {
  const bool good =
      value.size() == 55 && value.substr(0, 3) == "00-" && value[35] == '-' &&
      value[52] == '-' && IsId(value.substr(3, 32)) &&
      IsId(value.substr(36, 16)) &&
      value.substr(53).find_first_not_of(kHex) == std::string_view::npos;
  return good ? std::string(value) : "";
}

}  // namespace baton::router
