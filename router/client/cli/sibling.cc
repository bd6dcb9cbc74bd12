#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/base/strings.h"
#include "router/client/cli/command.h"

namespace baton::cli {

std::string BinaryFolder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

absl::Status ExecSibling(const std::string& name,
                         const char* const* arguments) {
  const std::string path = StrCat(BinaryFolder(), "/", name);
  execv(path.c_str(), const_cast<char* const*>(arguments));
  const int error = errno;
  const std::string message = StrCat(path, ": cannot start: ", strerror(error));
  return error == ENOENT ? absl::NotFoundError(message)
                         : absl::InternalError(message);
}

}  // namespace baton::cli
