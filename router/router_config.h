#ifndef BATON_ROUTER_ROUTER_CONFIG_H_
#define BATON_ROUTER_ROUTER_CONFIG_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/monotonic_time.h"
#include "common/config/config_parser.h"
#include "common/rpc/tls_options.h"
#include "router/front_door/generation_service.h"
#include "router/membership/membership.h"
#include "router/request_flow/router_core.h"

namespace baton::router {

// All that can be set about a router, with its defaults.
struct RouterConfig {
  std::string listen = "127.0.0.1:7000";
  std::string admin = "127.0.0.1:7001";
  bool insecure = false;
  TlsOptions tls;
  bool reflection = false;
  std::string model;              // GGUF file: tokenizer and chat template
  std::string served_model_name;  // empty: the name in the file
  std::vector<std::string> prefill;
  std::vector<std::string> decode;
  std::string router_id = "router-0";
  std::string policy = "least_loaded";
  std::string special_tokens = "hf";
  uint32_t default_max_tokens = 256;
  Duration max_deadline = std::chrono::minutes(10);

  std::string api_tokens;  // file; empty: everybody may call
  uint32_t max_requests_per_client = 4096;
  uint64_t max_held_back_bytes = ServiceOptions().max_held_back_bytes;
  uint64_t max_unread_bytes = StreamLimits().max_unread_bytes;
  Duration slow_client_timeout = StreamLimits().slow_client_timeout;

  uint64_t max_queue_requests = 1024;
  uint64_t max_queue_tokens = 4'000'000;
  uint64_t max_queue_bytes = 256 << 20;
  Duration max_queue_age = std::chrono::minutes(2);
  int max_replays = 3;
  uint32_t replay_percent = 10;
  uint32_t replays_per_second = 10;
  uint32_t replay_burst = 200;
  Duration slow_start = std::chrono::seconds(10);
  Duration stall_timeout = std::chrono::seconds(10);
  Duration silence_timeout = std::chrono::seconds(10);
  Duration progress_timeout = std::chrono::seconds(15);
  Duration startup_grace = std::chrono::seconds(10);
  Duration unavailable_grace{0};
  Duration resolve_interval = std::chrono::seconds(5);

  Duration drain_timeout = std::chrono::seconds(30);
  Duration termination_grace = Duration::zero();  // of the supervisor
  std::string ready_file;
  std::string log_level = "info";
  bool core_dumps = false;

  // Adds every flag; the object must outlive the parser.
  void Register(ConfigParser* parser);

  RouterOptions CoreOptions(uint32_t vocabulary_size,
                            uint64_t jitter_seed) const;
  // Whom the front door admits by certificate; empty: everybody.
  std::vector<PeerRole> AdmittedClients() const;
  MembershipOptions Members(RouterEpoch epoch) const;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTER_CONFIG_H_
