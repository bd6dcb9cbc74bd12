#include "tests/support/certificates.h"

#include <cstdlib>
#include <filesystem>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace baton::testing {

Certificates::Certificates() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "baton-certs-XXXXXX").string();
  BATON_CHECK(mkdtemp(pattern.data()) != nullptr);
  dir_ = pattern;
  Renew();
}

Certificates::~Certificates() {
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

CertificateFiles Certificates::Of(PeerRole role) const {
  return {.cert = File(StrCat(PeerRoleName(role), ".crt")),
          .key = File(StrCat(PeerRoleName(role), ".key")),
          .ca = File("ca.crt")};
}

void Certificates::Renew() const {
  const std::string command =
      StrCat(BATON_MAKE_CERTS, " ", dir_, " >/dev/null");
  BATON_CHECK(std::system(command.c_str()) == 0);
}

}  // namespace baton::testing
