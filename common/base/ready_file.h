#ifndef BATON_COMMON_BASE_READY_FILE_H_
#define BATON_COMMON_BASE_READY_FILE_H_

#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton {

// How a process tells whoever started it that it serves, and where: one flat
// JSON object of strings, {"address": "127.0.0.1:41234", "admin": "..."}.
using ReadyFields = std::map<std::string, std::string>;

// Replaces `path` at once, so that a reader sees all or nothing. Errors name
// the path and errno's text.
absl::Status WriteReadyFile(const std::string& path, const ReadyFields& fields);

// NotFound while the file does not exist; DataLoss when it is not a flat
// object of strings or larger than 64 KiB.
absl::StatusOr<ReadyFields> ReadReadyFile(const std::string& path);

// `text` in double quotes with JSON's escapes.
std::string JsonQuote(std::string_view text);

}  // namespace baton

#endif  // BATON_COMMON_BASE_READY_FILE_H_
