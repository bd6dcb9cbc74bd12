#include "common/base/core_dumps.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/strings.h"

namespace baton {
namespace {

absl::Status Failed(std::string_view what) {
  return absl::InternalError(
      StrCat("core dumps: ", what, ": ", strerror(errno)));
}

}  // namespace

absl::Status ForbidCoreDumps() {
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_CORE, &none) != 0) return Failed("RLIMIT_CORE");
  constexpr char kFilter[] = "/proc/self/coredump_filter";
  const int fd = open(kFilter, O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    // A kernel without core dumps has no such file.
    return errno == ENOENT ? absl::OkStatus() : Failed(kFilter);
  }
  const bool written = write(fd, "0", 1) == 1;
  const int error = errno;
  close(fd);
  errno = error;
  return written ? absl::OkStatus() : Failed(kFilter);
}

}  // namespace baton
