#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <vector>

#include "common/base/strings.h"
#include "common/config/config_parser.h"
#include "router/client/cli/command.h"
#include "router/credentials/api_tokens.h"

namespace baton::cli {
namespace {

absl::Status AppendLine(const std::string& path, const std::string& line) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  const bool written = fd >= 0 && write(fd, text.data(), text.size()) ==
                                      static_cast<ssize_t>(text.size());
  const int error = errno;
  if (fd >= 0 && close(fd) == 0 && written) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("api-tokens: ", path,
             ": cannot write: ", std::generic_category().message(error)));
}

}  // namespace

int RunToken(int argc, const char* const* argv) {
  std::vector<std::string> tenants;
  std::string file;
  ConfigParser parser(
      "baton token",
      "Makes an API token for a tenant. Prints the token, which cannot be "
      "shown again, and the line for the router's --api-tokens file, which "
      "holds only its hash.");
  parser.AddPositional("TENANT", &tenants, 1, 1);
  parser.AddString("api-tokens", &file,
                   "append the line to this file and print only the token");
  parser.ParseOrExit(argc, argv);

  const auto made = router::MakeApiToken(tenants[0]);
  absl::Status status = made.status();
  if (status.ok() && !file.empty()) status = AppendLine(file, made->line);
  if (!status.ok()) {
    std::fprintf(stderr, "baton: %s\n", std::string(status.message()).c_str());
    return 2;
  }
  std::printf("%s\n", made->token.c_str());
  if (file.empty()) std::printf("%s\n", made->line.c_str());
  return 0;
}

}  // namespace baton::cli
