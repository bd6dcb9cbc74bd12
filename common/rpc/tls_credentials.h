#ifndef BATON_COMMON_RPC_TLS_CREDENTIALS_H_
#define BATON_COMMON_RPC_TLS_CREDENTIALS_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/monotonic_time.h"
#include "common/rpc/certificate_files.h"
#include "common/rpc/peer_role.h"
#include "common/telemetry/metrics.h"

namespace baton {

// A process's certificate and the CAs it trusts, read again every two seconds:
// new connections use what the files hold, open ones stay. A certificate about
// to expire and files that no longer fit together are logged. Thread-safe.
class TlsCredentials {
 public:
  // Errors are those of CheckCertificateFiles.
  static absl::StatusOr<std::shared_ptr<const TlsCredentials>> Load(
      const CertificateFiles& files, std::optional<PeerRole> role);
  // Servers and channels made with the object may outlive it.
  ~TlsCredentials();

  // For a server. Peers must show a certificate with one of the `admitted`
  // roles; a call of any other peer ends with PERMISSION_DENIED, an audit line
  // in the log and a count. The health service is open to every certificate.
  // With no role, clients are not asked for a certificate at all.
  std::shared_ptr<grpc::ServerCredentials> ForServer(
      std::vector<PeerRole> admitted) const;
  // For a channel to a process of the cluster, which is known by one of these
  // roles, not by its name: workers are reached by changing addresses.
  std::shared_ptr<grpc::ChannelCredentials> ForPeer(
      std::vector<PeerRole> roles) const;
  // For a channel to a host whose certificate must have its name.
  std::shared_ptr<grpc::ChannelCredentials> ForHost() const;

  // Brings baton_tls_certificate_expiry_seconds,
  // baton_tls_peers_refused_total and baton_tls_handshakes_failed_total up to
  // date.
  void Publish(Metrics* metrics) const;

 private:
  class RoleGate;
  class RoleVerifier;
  // What gates count; outlives the object with them.
  struct Refusals;

  TlsCredentials(const CertificateFiles& files, std::optional<PeerRole> role,
                 CertificateInfo info);
  void Watch();
  void Look(int64_t now_s);

  const CertificateFiles files_;
  const std::optional<PeerRole> role_;
  const std::shared_ptr<grpc::experimental::FileWatcherCertificateProvider>
      provider_;
  const std::shared_ptr<Refusals> refusals_;
  std::atomic<int64_t> not_after_s_;
  std::string sha256_;      // the thread's
  std::string last_error_;  // the thread's
  int64_t warned_s_ = 0;    // the thread's

  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;  // mutex_
  std::thread thread_;
};

}  // namespace baton

#endif  // BATON_COMMON_RPC_TLS_CREDENTIALS_H_
