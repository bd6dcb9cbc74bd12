#include "router/credentials/api_token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/telemetry/log.h"

namespace baton::router {
namespace {

absl::Status SystemError(const std::string& path, int error) {
  return absl::InvalidArgumentError(
      StrCat(path, ": cannot read: ", std::generic_category().message(error)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ApiTokenFile>> ApiTokenFile::Open(
    std::string path, Duration check_interval) {
  std::unique_ptr<ApiTokenFile> file(
      new ApiTokenFile(std::move(path), check_interval));
  BATON_RETURN_IF_ERROR(file->Load());
  file->CheckAgainLater();
  return file;
}

std::shared_ptr<const ApiTokens> ApiTokenFile::tokens() const {
  std::lock_guard lock(mutex_);
  return tokens_;
}

ApiTokenFile::Version ApiTokenFile::VersionOf(const struct stat& info) {
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  return {info.st_dev, info.st_ino, info.st_size,
          info.st_mtim.tv_sec * kNanosPerSecond + info.st_mtim.tv_nsec};
}

absl::StatusOr<ApiTokenFile::Content> ApiTokenFile::Read(
    const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return SystemError(path, errno);
  const absl::Cleanup close_file = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(StrCat(path, ": not a regular file"));
  }
  if (info.st_size > static_cast<int64_t>(kMaxBytes)) {
    return absl::InvalidArgumentError(StrCat(path, ": too large (got ",
                                             info.st_size, " bytes, allowed ",
                                             kMaxBytes, ")"));
  }
  Content content;
  content.version = VersionOf(info);
  content.text.resize(static_cast<size_t>(info.st_size));
  size_t filled = 0;
  while (filled < content.text.size()) {
    const ssize_t got =
        read(fd, content.text.data() + filled, content.text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(path, errno);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  content.text.resize(filled);
  return content;
}

absl::Status ApiTokenFile::Load() {
  struct stat info;
  if (stat(path_.c_str(), &info) == 0 && VersionOf(info) == version_ &&
      last_error_.empty()) {
    return absl::OkStatus();
  }
  BATON_ASSIGN_OR_RETURN(const Content content, Read(path_));
  const bool first = version_.bytes < 0;
  version_ = content.version;
  BATON_ASSIGN_OR_RETURN(ApiTokens parsed,
                         ApiTokens::Parse(content.text, path_));
  const size_t count = parsed.size();
  {
    std::lock_guard lock(mutex_);
    tokens_ = std::make_shared<const ApiTokens>(std::move(parsed));
  }
  if (!first) log::Info("{}: read again, {} API tokens", path_, count);
  return absl::OkStatus();
}

void ApiTokenFile::CheckAgainLater() {
  loop_.PostAt(MonotonicNow() + check_interval_, [this] { Check(); });
}

void ApiTokenFile::Check() {
  const absl::Status status = Load();
  const std::string error(status.message());
  if (!status.ok() && error != last_error_) {
    log::Error("{}; the API tokens known so far stay in force", error);
  }
  last_error_ = error;
  CheckAgainLater();
}

}  // namespace baton::router
