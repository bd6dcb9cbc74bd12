#ifndef BATON_COMMON_RPC_TLS_OPTIONS_H_
#define BATON_COMMON_RPC_TLS_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/config/config_parser.h"
#include "common/rpc/certificate_files.h"
#include "common/rpc/peer_role.h"

namespace baton {

// TLS as the user configures it. Without files there is none.
struct TlsOptions {
  // Fills what is empty of `files` with ca.crt, ROLE.crt and ROLE.key of this
  // folder.
  std::string dir;
  CertificateFiles files;
  // Of a router: whether its clients must show a certificate of role client.
  // Workers always require one.
  std::string client_auth = "require";
  // Of a client: the name in the router's certificate, where it is not the one
  // it is reached by.
  std::string server_name;

  bool enabled() const { return !files.ca.empty(); }

  // Adds the flags of a process of this role and the checks of what they name;
  // errors are those of CheckCertificateFiles. The parser keeps pointers.
  void Register(ConfigParser* parser, PeerRole role);
  // The files of a process of this role, `dir` considered.
  CertificateFiles FilesFor(PeerRole role) const;
  // "--tls-cert=..." and so on, for a child process that serves with `role`.
  std::vector<std::string> FlagsFor(PeerRole role) const;

 private:
  absl::Status Complete(PeerRole role);
};

// "listen: 0.0.0.0:7000: refused without --insecure: ..." as FailedPrecondition
// unless the address is loopback, `tls`, or `insecure`. `name` is the option.
absl::Status CheckPlainText(std::string_view name, std::string_view address,
                            bool tls, bool insecure);

}  // namespace baton

#endif  // BATON_COMMON_RPC_TLS_OPTIONS_H_
