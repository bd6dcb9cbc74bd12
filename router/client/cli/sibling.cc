#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "router/client/cli/command.h"

namespace baton::cli {

std::string BinaryFolder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "." : self.parent_path().string();
}

std::string ProgramToType() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path self = BinaryFolder() + "/baton";
  const char* path = std::getenv("PATH");
  for (const absl::string_view folder :
       absl::StrSplit(path != nullptr ? path : "", ':')) {
    const fs::path candidate = fs::path(std::string(folder)) / "baton";
    if (!fs::is_regular_file(candidate, error)) continue;
    if (fs::equivalent(candidate, self, error)) return "baton";
    break;
  }
  const fs::path near = fs::proximate(self, error);
  return error ? self.string() : near.string();
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
