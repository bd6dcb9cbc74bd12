#ifndef BATON_COMMON_RPC_CERTIFICATE_FILES_H_
#define BATON_COMMON_RPC_CERTIFICATE_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/peer_role.h"

namespace baton {

// PEM files on disk; empty: none.
struct CertificateFiles {
  std::string cert{};  // the certificate, then those between it and the CA
  std::string key{};   // its private key, not encrypted; may be the same file
  std::string ca{};    // those that peers' certificates must lead to
};

// What one's own certificate says.
struct CertificateInfo {
  std::string subject;      // "CN=router-0,O=Example"
  int64_t not_after_s = 0;  // Unix time
  std::vector<PeerRole> roles;
  std::string sha256;  // of the certificate, 32 bytes
};

// Reads the files as a peer's TLS library would and checks them: readable, the
// key not readable by everyone, key and certificate belong together, valid at
// `now_s` (Unix time); and with a `role`, that the certificate has it and is
// issued by a CA in `ca` if that is given. Errors start with the option to
// blame and name the file: "tls-key: /etc/baton/tls.key: ...". With only `ca`
// the info is empty.
absl::StatusOr<CertificateInfo> CheckCertificateFiles(
    const CertificateFiles& files, std::optional<PeerRole> role, int64_t now_s);

}  // namespace baton

#endif  // BATON_COMMON_RPC_CERTIFICATE_FILES_H_
