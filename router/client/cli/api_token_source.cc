#include "router/client/cli/api_token_source.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "common/base/strings.h"

namespace baton::cli {
namespace {

constexpr size_t kMaxTokenBytes = 256;

absl::StatusOr<std::string> CheckToken(std::string text,
                                       const std::string& source) {
  absl::StripAsciiWhitespace(&text);
  const bool good = !text.empty() && text.size() <= kMaxTokenBytes &&
                    std::all_of(text.begin(), text.end(), absl::ascii_isgraph);
  if (good) return text;
  return absl::InvalidArgumentError(
      StrCat(source, ": no API token (got ", text.size(),
             " characters, allowed 1..", kMaxTokenBytes, " visible ones)"));
}

}  // namespace

absl::StatusOr<std::string> ReadApiToken(
    const std::string& file, const ConfigParser::Environment& environment) {
  if (file.empty()) {
    auto variable = environment("BATON_API_TOKEN");
    if (!variable.has_value()) return "";
    return CheckToken(*std::move(variable), "BATON_API_TOKEN");
  }
  std::ifstream stream(file);
  std::string text(kMaxTokenBytes + 2, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad() || (stream.fail() && !stream.eof())) {
    return absl::InvalidArgumentError(
        StrCat("api-token-file: ", file, ": cannot read"));
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  return CheckToken(std::move(text), StrCat("api-token-file: ", file));
}

absl::StatusOr<std::string> ReadApiToken(const std::string& file) {
  return ReadApiToken(
      file, [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        if (value == nullptr) return std::nullopt;
        return std::string(value);
      });
}

}  // namespace baton::cli
