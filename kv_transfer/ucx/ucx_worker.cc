#include "kv_transfer/ucx/ucx_worker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <ucs/config/global_opts.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::transfer {
namespace {

struct Setting {
  const char* name;
  std::string value;
  bool overrides = false;  // the value was made from the environment's
};

// Where the worker listens, and what UCX may use.
std::string DevicesFor(const UcxOptions& options) {
  if (const char* given = std::getenv("UCX_NET_DEVICES")) return given;
  if (!options.net_devices.empty()) return options.net_devices;
  return options.trusted_network ? "all" : "lo";
}

// The user's transports, and TCP, over which the connection manager introduces
// peers to each other even where shared memory carries the data. By default all
// but UCX's shared-memory queues: every peer writes into the receiver's one
// queue, and one that is killed in the middle of it stops it for all.
std::string TransportsFor(std::string_view given) {
  if (given.empty()) return "^sysv,posix";
  const std::vector<std::string> names = absl::StrSplit(ToAbsl(given), ',');
  const bool listed = std::ranges::any_of(names, [](const std::string& name) {
    return name == "all" || name == "tcp" || name.starts_with('^');
  });
  return listed ? std::string(given) : StrCat(given, ",tcp");
}

std::vector<Setting> SettingsFor(const UcxOptions& options) {
  const char* transports = std::getenv("UCX_TLS");
  const auto keepalive =
      std::chrono::duration_cast<std::chrono::microseconds>(options.keepalive);
  return {
      {"KEEPALIVE_INTERVAL", StrCat(keepalive.count(), "us")},
      // The receiver alone writes into its memory.
      {"RNDV_SCHEME", "get_zcopy"},
      // Never part of a block over TCP when the rest goes by shared memory.
      {"MAX_RNDV_RAILS", "1"},
      {"NET_DEVICES", DevicesFor(options)},
      {"TLS", TransportsFor(transports == nullptr ? "" : transports), true},
  };
}

bool InEnvironment(const Setting& setting) {
  return std::getenv(StrCat("UCX_", setting.name).c_str()) != nullptr;
}

// Settings of single UCX transports can only be made in the environment.
void SetEnvironment() {
  constexpr const char* kVariables[][2] = {
      // Without these, shared memory is not used when peer failures are to
      // be reported.
      {"UCX_POSIX_ERROR_HANDLING", "y"},
      {"UCX_SYSV_ERROR_HANDLING", "y"},
      {"UCX_TCP_PUT_ENABLE", "n"},
      // Measured with tests/bench/transfer_bench.
      {"UCX_SYSV_SEG_SIZE", "32K"},
      {"UCX_POSIX_SEG_SIZE", "32K"},
      {"UCX_TCP_TX_SEG_SIZE", "32K"},
      {"UCX_TCP_RX_SEG_SIZE", "128K"},
  };
  for (const auto& [name, value] : kVariables) setenv(name, value, 0);
}

}  // namespace

absl::Status UcxError(std::string_view doing, ucs_status_t status) {
  return absl::UnavailableError(
      StrCat("ucx: ", doing, ": ", ucs_status_string(status)));
}

absl::StatusOr<std::unique_ptr<UcxWorker>> UcxWorker::Create(
    const UcxOptions& options) {
  std::unique_ptr<UcxWorker> worker(new UcxWorker);
  BATON_RETURN_IF_ERROR(worker->Start(options));
  return worker;
}

absl::Status UcxWorker::Start(const UcxOptions& options) {
  SetEnvironment();
  // Which of those a build of UCX knows is not the user's concern.
  ucs_global_opts_set_value("WARN_UNUSED_ENV_VARS", "n");
  BATON_ASSIGN_OR_RETURN(interface_, DeviceAddress(DevicesFor(options)));
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return UcxError("read configuration", status);
  for (const Setting& setting : SettingsFor(options)) {
    if (InEnvironment(setting) && !setting.overrides) continue;
    status = ucp_config_modify(config, setting.name, setting.value.c_str());
    if (status == UCS_OK) continue;
    ucp_config_release(config);
    return UcxError(StrCat("set ", setting.name, "=", setting.value), status);
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "baton";
  status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  if (status != UCS_OK) return UcxError("initialise", status);

  ucp_worker_params_t worker_params{};
  worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker_params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  status = ucp_worker_create(context_, &worker_params, &worker_);
  if (status != UCS_OK) return UcxError("create worker", status);
  status = ucp_worker_get_efd(worker_, &event_fd_);
  if (status != UCS_OK) return UcxError("get event descriptor", status);

  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0) return absl::UnavailableError("ucx: eventfd failed");
  return absl::OkStatus();
}

UcxWorker::~UcxWorker() {
  if (listener_ != nullptr) ucp_listener_destroy(listener_);
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
  if (wake_fd_ >= 0) close(wake_fd_);
}

absl::Status UcxWorker::OnActiveMessage(unsigned id,
                                        ucp_am_recv_callback_t callback,
                                        void* argument) {
  ucp_am_handler_param_t param{};
  param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                     UCP_AM_HANDLER_PARAM_FIELD_CB |
                     UCP_AM_HANDLER_PARAM_FIELD_ARG;
  param.id = id;
  param.cb = callback;
  param.arg = argument;
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_, &param);
  if (status != UCS_OK) return UcxError("set message handler", status);
  return absl::OkStatus();
}

absl::StatusOr<std::string> UcxWorker::Listen(
    ucp_listener_conn_callback_t callback, void* argument) {
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
                      UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = interface_.get();
  params.sockaddr.addrlen = interface_.length;
  params.conn_handler.cb = callback;
  params.conn_handler.arg = argument;
  ucs_status_t status = ucp_listener_create(worker_, &params, &listener_);
  if (status != UCS_OK) {
    return UcxError(StrCat("listen at ", FormatUcxAddress(interface_.get())),
                    status);
  }
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  status = ucp_listener_query(listener_, &attributes);
  if (status != UCS_OK) return UcxError("get listening port", status);
  return FormatUcxAddress(
      reinterpret_cast<const sockaddr*>(&attributes.sockaddr));
}

void UcxWorker::Wait(Duration timeout) {
  if (timeout <= Duration::zero()) return;
  if (ucp_worker_arm(worker_) != UCS_OK) return;
  pollfd fds[] = {{event_fd_, POLLIN, 0}, {wake_fd_, POLLIN, 0}};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(timeout);
  const timespec limit{
      static_cast<time_t>(std::min<int64_t>(seconds.count(), 3600)),
      static_cast<long>((timeout - seconds).count())};
  ppoll(fds, 2, &limit, nullptr);
  if (fds[1].revents != 0) {
    eventfd_t count;
    eventfd_read(wake_fd_, &count);
  }
}

void UcxWorker::Wake() { eventfd_write(wake_fd_, 1); }

}  // namespace baton::transfer
