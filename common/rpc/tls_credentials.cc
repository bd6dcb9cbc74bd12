#include "common/rpc/tls_credentials.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <string_view>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/rpc/grpc_log.h"
#include "common/telemetry/counter_total.h"
#include "common/telemetry/log.h"

namespace baton {
namespace {

namespace tls = grpc::experimental;

constexpr unsigned kRefreshSeconds = 2;
constexpr auto kLookInterval = std::chrono::seconds(2);
constexpr int64_t kDay = 24 * 3600;
constexpr int64_t kExpiresSoon = 7 * kDay;
constexpr char kHealthPath[] = "/grpc.health.v1.Health/";
// Audit lines per second; the rest is only counted.
constexpr int kAuditLines = 10;

std::string_view View(grpc::string_ref text) {
  return {text.data(), text.size()};
}

bool Intersect(const std::vector<PeerRole>& a, const std::vector<PeerRole>& b) {
  return std::ranges::find_first_of(a, b) != a.end();
}

std::vector<PeerRole> RolesOf(const std::vector<grpc::string_ref>& uris) {
  std::vector<PeerRole> roles;
  for (const grpc::string_ref& uri : uris) {
    if (const auto role = ParsePeerRoleUri(View(uri))) roles.push_back(*role);
  }
  return roles;
}

std::shared_ptr<tls::FileWatcherCertificateProvider> MakeProvider(
    const CertificateFiles& files) {
  return std::make_shared<tls::FileWatcherCertificateProvider>(
      files.key, files.cert, files.ca, kRefreshSeconds);
}

}  // namespace

struct TlsCredentials::Refusals {
  std::atomic<uint64_t> count{0};
  std::mutex mutex;
  std::time_t second = 0;  // mutex
  int lines = 0;           // mutex

  bool MayLog() {
    std::lock_guard lock(mutex);
    const std::time_t now = std::time(nullptr);
    if (now != std::exchange(second, now)) lines = 0;
    return ++lines <= kAuditLines;
  }
};

// Looks at every call that comes in.
class TlsCredentials::RoleGate final : public grpc::AuthMetadataProcessor {
 public:
  RoleGate(std::vector<PeerRole> admitted, std::shared_ptr<Refusals> refusals)
      : admitted_(std::move(admitted)), refusals_(std::move(refusals)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata,
                       grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const std::vector<PeerRole> roles =
        RolesOf(context->FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME));
    if (Intersect(roles, admitted_)) return grpc::Status::OK;
    const auto path = metadata.find(":path");
    const std::string_view method =
        path == metadata.end() ? std::string_view() : View(path->second);
    if (method.starts_with(kHealthPath)) return grpc::Status::OK;
    refusals_->count.fetch_add(1);
    if (refusals_->MayLog()) {
      const auto subjects =
          context->FindPropertyValues(GRPC_X509_SUBJECT_PROPERTY_NAME);
      log::Warn("audit: refused {} to \"{}\": role {}, allowed {}", method,
                subjects.empty() ? std::string_view() : View(subjects[0]),
                JoinPeerRoles(roles, ", "), JoinPeerRoles(admitted_));
    }
    return grpc::Status(
        grpc::StatusCode::PERMISSION_DENIED,
        StrCat("peer: the certificate's role is ", JoinPeerRoles(roles, ", "),
               ", allowed ", JoinPeerRoles(admitted_)));
  }

 private:
  const std::vector<PeerRole> admitted_;
  const std::shared_ptr<Refusals> refusals_;
};

// Looks at the certificate of a server.
class TlsCredentials::RoleVerifier final
    : public tls::ExternalCertificateVerifier {
 public:
  RoleVerifier(std::vector<PeerRole> allowed,
               std::shared_ptr<Refusals> refusals)
      : allowed_(std::move(allowed)), refusals_(std::move(refusals)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>,
              grpc::Status* result) override {
    const std::vector<PeerRole> roles = RolesOf(request->uri_names());
    if (Intersect(roles, allowed_)) return true;
    refusals_->count.fetch_add(1);
    if (refusals_->MayLog()) {
      log::Warn("audit: left {} (\"{}\"): role {}, expected {}",
                View(request->target_name()), View(request->common_name()),
                JoinPeerRoles(roles, ", "), JoinPeerRoles(allowed_));
    }
    *result = grpc::Status(
        grpc::StatusCode::PERMISSION_DENIED,
        StrCat("peer: the certificate's role is ", JoinPeerRoles(roles, ", "),
               ", expected ", JoinPeerRoles(allowed_)));
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::vector<PeerRole> allowed_;
  const std::shared_ptr<Refusals> refusals_;
};

absl::StatusOr<std::shared_ptr<const TlsCredentials>> TlsCredentials::Load(
    const CertificateFiles& files, std::optional<PeerRole> role) {
  BATON_ASSIGN_OR_RETURN(
      CertificateInfo info,
      CheckCertificateFiles(files, role, std::time(nullptr)));
  return std::shared_ptr<const TlsCredentials>(
      new TlsCredentials(files, role, std::move(info)));
}

TlsCredentials::TlsCredentials(const CertificateFiles& files,
                               std::optional<PeerRole> role,
                               CertificateInfo info)
    : files_(files),
      role_(role),
      provider_(MakeProvider(files)),
      refusals_(std::make_shared<Refusals>()),
      not_after_s_(info.not_after_s),
      sha256_(std::move(info.sha256)) {
  if (!files_.cert.empty()) thread_ = std::thread([this] { Watch(); });
}

TlsCredentials::~TlsCredentials() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<grpc::ServerCredentials> TlsCredentials::ForServer(
    std::vector<PeerRole> admitted) const {
  tls::TlsServerCredentialsOptions options(provider_);
  options.watch_identity_key_cert_pairs();
  if (admitted.empty()) {
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    return tls::TlsServerCredentials(options);
  }
  options.watch_root_certs();
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  auto credentials = tls::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(
      std::make_shared<RoleGate>(std::move(admitted), refusals_));
  return credentials;
}

std::shared_ptr<grpc::ChannelCredentials> TlsCredentials::ForPeer(
    std::vector<PeerRole> roles) const {
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<RoleVerifier>(std::move(roles),
                                                             refusals_));
  return tls::TlsCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TlsCredentials::ForHost() const {
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  options.watch_root_certs();
  if (!files_.cert.empty()) options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      std::make_shared<tls::HostNameCertificateVerifier>());
  return tls::TlsCredentials(options);
}

void TlsCredentials::Watch() {
  std::unique_lock lock(mutex_);
  while (!stop_.wait_for(lock, kLookInterval, [this] { return stopping_; })) {
    Look(std::time(nullptr));
  }
}

void TlsCredentials::Look(int64_t now_s) {
  const auto info = CheckCertificateFiles(files_, role_, now_s);
  const std::string error =
      info.ok() ? "" : std::string(info.status().message());
  if (error != std::exchange(last_error_, error) && !error.empty()) {
    log::Error("TLS: new connections may fail: {}", error);
  }
  if (info.ok()) {
    not_after_s_ = info->not_after_s;
    if (info->sha256 != std::exchange(sha256_, info->sha256)) {
      log::Info("TLS: certificate replaced, {} s until it expires",
                info->not_after_s - now_s);
      warned_s_ = 0;
    }
  }
  const int64_t left_s = not_after_s_ - now_s;
  if (left_s < kExpiresSoon && now_s - warned_s_ >= kDay) {
    warned_s_ = now_s;
    log::Warn("TLS: {} expires in {} h", files_.cert, left_s / 3600);
  }
}

void TlsCredentials::Publish(Metrics* metrics) const {
  metrics
      ->AddGauge("baton_tls_certificate_expiry_seconds",
                 "Until this process's certificate expires")
      .Set(static_cast<double>(not_after_s_ - std::time(nullptr)));
  std::lock_guard lock(refusals_->mutex);
  RaiseTo(metrics->AddCounter("baton_tls_peers_refused_total",
                              "Calls and connections refused because of the "
                              "role in the certificate"),
          refusals_->count.load());
  RaiseTo(metrics->AddCounter("baton_tls_handshakes_failed_total",
                              "TLS handshakes that failed, in and out"),
          FailedTlsHandshakes());
}

}  // namespace baton
