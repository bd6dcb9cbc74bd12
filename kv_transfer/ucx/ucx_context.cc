#include "kv_transfer/ucx/ucx_context.h"

#include <ucs/config/global_opts.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
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
// but UCX's shared-memory queues, which cost every link megabytes.
std::string TransportsFor(std::string_view given) {
  if (given.empty()) return "^sysv,posix";
  const std::vector<std::string> names = absl::StrSplit(ToAbsl(given), ',');
  const bool listed = std::ranges::any_of(names, [](const std::string& name) {
    return name == "all" || name == "tcp" || name.starts_with('^');
  });
  return listed ? std::string(given) : StrCat(given, ",tcp");
}

std::vector<Setting> SettingsFor(const UcxOptions& options,
                                 const std::string& transports) {
  const auto keepalive =
      std::chrono::duration_cast<std::chrono::microseconds>(options.keepalive);
  return {
      {"KEEPALIVE_INTERVAL", StrCat(keepalive.count(), "us")},
      // The receiver alone writes into its memory.
      {"RNDV_SCHEME", "get_zcopy"},
      // Never part of a block over TCP when the rest goes by shared memory.
      {"MAX_RNDV_RAILS", "1"},
      {"NET_DEVICES", DevicesFor(options)},
      {"TLS", transports, true},
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
      // A queue of shared memory per link: as many segments as it has places,
      // and some that are being read.
      {"UCX_SYSV_RX_BUFS_GROW", "96"},
      {"UCX_POSIX_RX_BUFS_GROW", "96"},
  };
  for (const auto& [name, value] : kVariables) setenv(name, value, 0);
}

}  // namespace

absl::Status UcxError(std::string_view doing, ucs_status_t status) {
  return absl::UnavailableError(
      StrCat("ucx: ", doing, ": ", ucs_status_string(status)));
}

bool NamesSharedQueues(std::string_view transports) {
  const bool without = transports.starts_with('^');
  if (without) transports.remove_prefix(1);
  std::vector<std::string> names = absl::StrSplit(ToAbsl(transports), ',');
  const auto lists = [&names](std::initializer_list<std::string_view> any) {
    return std::ranges::any_of(names, [&any](std::string_view name) {
      if (name.starts_with('\\')) name.remove_prefix(1);
      return std::ranges::find(any, name.substr(0, name.find(':'))) !=
             any.end();
    });
  };
  if (!without) {
    return lists({"all", "sm", "shm", "mm", "sysv", "posix", "xpmem"});
  }
  // xpmem reports no failures of peers unless a variable asks for it.
  const bool xpmem =
      std::getenv("UCX_XPMEM_ERROR_HANDLING") != nullptr && !lists({"xpmem"});
  return !lists({"sm", "shm", "mm"}) &&
         (xpmem || !lists({"sysv"}) || !lists({"posix"}));
}

absl::StatusOr<std::unique_ptr<UcxContext>> UcxContext::Create(
    const UcxOptions& options) {
  std::unique_ptr<UcxContext> context(new UcxContext);
  BATON_RETURN_IF_ERROR(context->Start(options));
  return context;
}

absl::Status UcxContext::Start(const UcxOptions& options) {
  SetEnvironment();
  // Which of those a build of UCX knows is not the user's concern.
  ucs_global_opts_set_value("WARN_UNUSED_ENV_VARS", "n");
  BATON_ASSIGN_OR_RETURN(interface_, DeviceAddress(DevicesFor(options)));
  const char* given = std::getenv("UCX_TLS");
  const std::string transports = TransportsFor(given == nullptr ? "" : given);
  shared_queues_ = NamesSharedQueues(transports);
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return UcxError("read configuration", status);
  for (const Setting& setting : SettingsFor(options, transports)) {
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
  return absl::OkStatus();
}

UcxContext::~UcxContext() {
  if (context_ != nullptr) ucp_cleanup(context_);
}

}  // namespace baton::transfer
