#ifndef BATON_ROUTER_CREDENTIALS_API_TOKEN_FILE_H_
#define BATON_ROUTER_CREDENTIALS_API_TOKEN_FILE_H_

#include <sys/stat.h>

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/event_loop.h"
#include "common/base/monotonic_time.h"
#include "router/credentials/api_tokens.h"

namespace baton::router {

// The tokens of a file, read again when the file changes (also when a link on
// the way to it does). A change that cannot be read or is refused keeps the
// tokens known so far and is logged once. Thread-safe.
class ApiTokenFile {
 public:
  static constexpr size_t kMaxBytes = 4 << 20;

  // Errors name the path: not readable, not a regular file, too large, or what
  // ApiTokens::Parse says; an empty file is refused.
  static absl::StatusOr<std::unique_ptr<ApiTokenFile>> Open(
      std::string path, Duration check_interval = std::chrono::seconds(1));

  std::shared_ptr<const ApiTokens> tokens() const;

 private:
  // Tells one content of the file from another without reading it.
  struct Version {
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t bytes = -1;
    int64_t changed_ns = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };
  struct Content {
    Version version;
    std::string text;
  };

  ApiTokenFile(std::string path, Duration check_interval)
      : path_(std::move(path)), check_interval_(check_interval) {}
  static Version VersionOf(const struct stat& info);
  static absl::StatusOr<Content> Read(const std::string& path);
  absl::Status Load();
  void CheckAgainLater();
  void Check();

  const std::string path_;
  const Duration check_interval_;
  Version version_;         // of the last attempt; loop only after Open
  std::string last_error_;  // loop only

  mutable std::mutex mutex_;
  std::shared_ptr<const ApiTokens> tokens_;  // mutex_

  EventLoop loop_{"api-tokens"};  // last: its timer uses the rest
};

}  // namespace baton::router

#endif  // BATON_ROUTER_CREDENTIALS_API_TOKEN_FILE_H_
