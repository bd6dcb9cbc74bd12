#include "kv_transfer/ucx/ucx_worker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "kv_transfer/ucx/ucx_address.h"

namespace baton::transfer {
namespace {

struct Setting {
  const char* name;
  std::string value;
};

std::vector<Setting> SettingsFor(const UcxOptions& options) {
  const auto keepalive =
      std::chrono::duration_cast<std::chrono::microseconds>(options.keepalive);
  std::vector<Setting> settings = {
      {"KEEPALIVE_INTERVAL", StrCat(keepalive.count(), "us")},
      // Without these, shared memory is not used when peer failures are to
      // be reported.
      {"POSIX_ERROR_HANDLING", "y"},
      {"SYSV_ERROR_HANDLING", "y"},
      // The receiver alone writes into its memory.
      {"RNDV_SCHEME", "get_zcopy"},
      {"TCP_PUT_ENABLE", "n"},
  };
  if (!options.net_devices.empty()) {
    settings.push_back({"NET_DEVICES", options.net_devices});
  } else if (!options.trusted_network) {
    settings.push_back({"NET_DEVICES", "lo"});
  }
  return settings;
}

bool InEnvironment(const Setting& setting) {
  return std::getenv(StrCat("UCX_", setting.name).c_str()) != nullptr;
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
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return UcxError("read configuration", status);
  for (const Setting& setting : SettingsFor(options)) {
    if (InEnvironment(setting)) continue;
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

  ucp_address_t* address = nullptr;
  size_t length = 0;
  status = ucp_worker_get_address(worker_, &address, &length);
  if (status != UCS_OK) return UcxError("get worker address", status);
  const std::string bytes(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
  if (bytes.size() + 64 > kMaxAddressBytes) {
    return absl::UnavailableError(
        StrCat("ucx: the worker address has ", bytes.size(),
               " bytes; name fewer devices in UCX_NET_DEVICES"));
  }
  address_ = WrapUcxAddress(bytes);

  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0) return absl::UnavailableError("ucx: eventfd failed");
  return absl::OkStatus();
}

UcxWorker::~UcxWorker() {
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
