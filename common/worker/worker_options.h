#ifndef BATON_COMMON_WORKER_WORKER_OPTIONS_H_
#define BATON_COMMON_WORKER_WORKER_OPTIONS_H_

#include <cstdint>
#include <string>

#include "common/base/monotonic_time.h"
#include "common/config/config_parser.h"
#include "common/rpc/tls_options.h"

namespace baton {

// Configuration that both kinds of worker have. 0 means: chosen from what the
// process may use.
struct WorkerOptions {
  std::string model;
  std::string listen = "127.0.0.1:0";
  std::string admin = "127.0.0.1:0";
  bool insecure = false;
  TlsOptions tls;
  std::string worker_id;
  uint32_t threads = 0;
  std::string isa = "auto";
  std::string weights = "file";
  std::string kv_type = "f16";
  uint64_t kv_pool_bytes = 0;
  uint32_t kv_blocks = 0;
  uint32_t max_context = 0;  // 0: the model's
  uint32_t step_tokens = 128;
  Duration step_target = std::chrono::milliseconds(200);
  std::string transport = "auto";
  std::string transfer_listen;  // of the grpc transport; empty: as `listen`
  bool trusted_network = false;
  Duration drain_timeout = std::chrono::seconds(30);
  Duration termination_grace = Duration::zero();
  Duration step_timeout = std::chrono::seconds(60);
  std::string ready_file;
  std::string log_level = "info";
  bool core_dumps = false;

  // `default_id` names the worker where --worker-id does not.
  explicit WorkerOptions(std::string default_id)
      : worker_id(std::move(default_id)) {}
  // Flags, limits and rules across values. The parser keeps pointers.
  void Register(ConfigParser* parser, PeerRole role);

  // "ucx" or "grpc", for `transport` auto too: grpc where UCX's ports could be
  // reached by others than the network is trusted with.
  std::string TransportName() const;
  // host:port where the grpc transport listens.
  std::string TransferAddress() const;
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_WORKER_OPTIONS_H_
