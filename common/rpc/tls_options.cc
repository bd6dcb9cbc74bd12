#include "common/rpc/tls_options.h"

#include <ctime>
#include <optional>

#include "common/base/host_port.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton {
namespace {

void Fill(std::string* path, const std::string& dir, std::string_view file) {
  if (path->empty()) *path = StrCat(dir, "/", file);
}

}  // namespace

void TlsOptions::Register(ConfigParser* parser, PeerRole role) {
  parser->AddString("tls-dir", &dir,
                    "folder with ca.crt, ROLE.crt and ROLE.key, instead of "
                    "naming each (deploy/make-certs.sh makes one)");
  parser->AddString("tls-cert", &files.cert,
                    "PEM file with this process's certificate chain");
  parser->AddString("tls-key", &files.key, "PEM file with its private key");
  parser->AddString("tls-ca", &files.ca,
                    "PEM file with the CAs that peers' certificates lead to; "
                    "turns TLS on");
  if (role == PeerRole::kRouter) {
    parser->AddChoice("tls-client-auth", &client_auth, {"require", "none"},
                      "whether clients must show a certificate");
  }
  if (role == PeerRole::kClient) {
    parser->AddString("tls-server-name", &server_name,
                      "name to expect in the router's certificate instead of "
                      "its address");
  }
  parser->AddCheck([this, role] { return Complete(role); });
}

CertificateFiles TlsOptions::FilesFor(PeerRole role) const {
  CertificateFiles all = files;
  if (dir.empty()) return all;
  Fill(&all.ca, dir, "ca.crt");
  if (all.cert.empty() && all.key.empty()) {
    Fill(&all.cert, dir, StrCat(PeerRoleName(role), ".crt"));
    Fill(&all.key, dir, StrCat(PeerRoleName(role), ".key"));
  }
  return all;
}

absl::Status TlsOptions::Complete(PeerRole role) {
  files = FilesFor(role);
  const CertificateFiles& f = files;
  if (f.cert.empty() && f.key.empty() && f.ca.empty()) return absl::OkStatus();
  if (f.cert.empty() != f.key.empty()) {
    return absl::InvalidArgumentError(f.cert.empty()
                                          ? "tls-cert: required with tls-key"
                                          : "tls-key: required with tls-cert");
  }
  if (f.ca.empty()) {
    return absl::InvalidArgumentError(
        "tls-ca: required with tls-cert (what peers are checked against)");
  }
  const bool client = role == PeerRole::kClient;
  if (f.cert.empty() && !client) {
    return absl::InvalidArgumentError("tls-cert: required with tls-ca");
  }
  // A client's certificate is judged by whom it is shown to.
  return CheckCertificateFiles(
             files, client ? std::nullopt : std::optional<PeerRole>(role),
             std::time(nullptr))
      .status();
}

std::vector<std::string> TlsOptions::FlagsFor(PeerRole role) const {
  const CertificateFiles named = FilesFor(role);
  if (named.ca.empty()) return {};
  std::vector<std::string> flags = {StrCat("--tls-cert=", named.cert),
                                    StrCat("--tls-key=", named.key),
                                    StrCat("--tls-ca=", named.ca)};
  if (role == PeerRole::kRouter) {
    flags.push_back(StrCat("--tls-client-auth=", client_auth));
  }
  return flags;
}

absl::Status CheckPlainText(std::string_view name, std::string_view address,
                            bool tls, bool insecure) {
  BATON_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  if (tls || insecure || IsLoopback(parsed.host)) return absl::OkStatus();
  return absl::FailedPreconditionError(StrCat(
      name, name.empty() ? "" : ": ", address,
      ": refused without --insecure: plain text on an address that other "
      "machines can reach; use 127.0.0.1, or TLS (--tls-cert, --tls-key, "
      "--tls-ca), or --insecure where the network is trusted"));
}

}  // namespace baton
