#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "common/base/core_dumps.h"
#include "common/base/cpu_check.h"
#include "common/base/host_port.h"
#include "common/base/process_start.h"
#include "common/base/random_bytes.h"
#include "common/base/ready_file.h"
#include "common/base/shutdown_requests.h"
#include "common/base/shutdown_signals.h"
#include "common/base/status_macros.h"
#include "common/config/drain_warning.h"
#include "common/rpc/rpc_server.h"
#include "common/rpc/tls_credentials.h"
#include "common/telemetry/admin_server.h"
#include "common/telemetry/log.h"
#include "common/telemetry/metrics.h"
#include "router/front_door/authentication.h"
#include "router/front_door/generation_service.h"
#include "router/front_door/router_drain.h"
#include "router/front_door/router_driver.h"
#include "router/front_door/router_metrics.h"
#include "router/front_door/served_model.h"
#include "router/router_config.h"

namespace baton::router {
namespace {

constexpr char kServiceName[] = "baton.v1.Generation";
void WarnOfPlainText(const RouterConfig& config) {
  for (const auto* list : {&config.prefill, &config.decode}) {
    for (const std::string& address : *list) {
      const auto parsed = ParseHostPort(address);
      if (!parsed.ok() || IsLoopback(parsed->host)) continue;
      log::Warn("prompts travel to {} in plain text: there is no TLS", address);
    }
  }
}

// Returns only when the router cannot start.
absl::Status Serve(const RouterConfig& config, ShutdownRequests& requests) {
  BATON_ASSIGN_OR_RETURN(ServedModel model, LoadServedModel(config.model));
  if (!config.served_model_name.empty()) model.name = config.served_model_name;
  const auto vocabulary =
      static_cast<uint32_t>(model.prompts->tokenizer().vocabulary_size());
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<RoutingPolicy> policy,
                         MakePolicy(config.policy));

  std::unique_ptr<ApiTokenFile> tokens;
  if (!config.api_tokens.empty()) {
    BATON_ASSIGN_OR_RETURN(tokens, ApiTokenFile::Open(config.api_tokens));
    log::Info("{} API tokens; every call needs one", tokens->tokens()->size());
  }
  MembershipOptions members = config.Members(RouterEpoch(RandomNonZero64()));
  if (config.tls.enabled()) {
    BATON_ASSIGN_OR_RETURN(
        members.link.tls,
        TlsCredentials::Load(config.tls.files, PeerRole::kRouter));
  } else {
    WarnOfPlainText(config);
  }
  const std::shared_ptr<const TlsCredentials> tls = members.link.tls;

  Metrics metrics("router", model.name);
  RouterMetrics router_metrics(&metrics);
  std::unique_ptr<RpcServer> server;
  RouterDriver driver(config.CoreOptions(vocabulary, RandomNonZero64()),
                      std::move(policy), std::move(members), &router_metrics,
                      [&server](const absl::Status& ready) {
                        if (server == nullptr) return;
                        log::Info("{}",
                                  ready.ok() ? "serving" : ready.ToString());
                        server->SetServing("", ready.ok());
                        server->SetServing(kServiceName, ready.ok());
                      });
  GenerationService service(
      {.policy = {.model_name = model.name,
                  .max_context_tokens = model.context_tokens,
                  .default_max_tokens = config.default_max_tokens,
                  .escape_special_tokens = config.special_tokens == "safe"},
       .max_deadline = config.max_deadline,
       .created_unix_s = std::time(nullptr),
       .api_tokens = tokens.get(),
       .max_requests_per_client = config.max_requests_per_client,
       .max_held_back_bytes = config.max_held_back_bytes,
       .stream = {.max_unread_bytes = config.max_unread_bytes,
                  .slow_client_timeout = config.slow_client_timeout}},
      model.prompts.get(), &driver);

  BATON_ASSIGN_OR_RETURN(
      const std::unique_ptr<AdminServer> admin,
      AdminServer::Start({.address = config.admin,
                          .metrics =
                              [&] {
                                if (tls != nullptr) tls->Publish(&metrics);
                                return metrics.Render();
                              },
                          .ready = [&] { return driver.ready(); }}));
  BATON_ASSIGN_OR_RETURN(
      server,
      RpcServer::Start({.address = config.listen,
                        .insecure_any_address = config.insecure,
                        .max_metadata_bytes = MetadataLimit::kConnectionBytes,
                        .reflection = config.reflection,
                        .tls = tls,
                        .admitted = config.AdmittedClients()},
                       {&service}));
  server->SetServing(kServiceName, false);
  driver.Start();
  requests.StartServing();
  log::Info("model {}: vocabulary {}, context {}; listening on {}, admin {}",
            model.name, vocabulary, model.context_tokens, server->address(),
            admin->address());
  if (!config.ready_file.empty()) {
    BATON_RETURN_IF_ERROR(WriteReadyFile(
        config.ready_file,
        {{"address", server->address()}, {"admin", admin->address()}}));
  }

  requests.WaitAbove(0, kNever);
  log::ExitProcess(
      DrainRouter(driver, [&service] { return service.generate_calls(); },
                  *server, requests, {.timeout = config.drain_timeout}));
}

}  // namespace
}  // namespace baton::router

int main(int argc, char** argv) {
  baton::RequireSupportedCpu();
  baton::ShutdownRequests requests;
  const baton::ShutdownSignals handler(
      [&](int signal) { requests.Add(signal); });
  baton::router::RouterConfig config;
  baton::ConfigParser parser("baton-router",
                             "Serves clients from prefill and decode workers.");
  config.Register(&parser);
  parser.ParseOrExit(argc, argv);
  baton::log::InitLogging(
      {.level = *baton::log::ParseLevel(config.log_level), .role = "router"});
  if (!config.core_dumps) {
    const absl::Status forbidden = baton::ForbidCoreDumps();
    if (!forbidden.ok()) baton::log::Warn("{}", forbidden.ToString());
  }
  const std::string warning = baton::DrainWarning(
      config.drain_timeout, baton::router::RouterDrain().after(),
      config.termination_grace);
  if (!warning.empty()) baton::log::Warn("{}", warning);
  const absl::Status status = baton::router::Serve(config, requests);
  baton::log::Error("cannot serve: {}", std::string(status.message()));
  return baton::StartFailureCode(status);
}
