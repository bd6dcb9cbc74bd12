#include "kv_transfer/ucx/ucx_transport.h"

#include <cstdlib>
#include <string_view>

#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "kv_transfer/ucx/ucx_engine.h"

namespace baton::transfer {
namespace {

absl::Status Refused(std::string_view variable, std::string_view value,
                     std::string_view why) {
  return absl::InvalidArgumentError(
      StrCat(variable, "=", value, ": refused", why));
}

// What the environment must not undo.
absl::Status CheckEnvironment(const UcxOptions& options) {
  const char* put = std::getenv("UCX_TCP_PUT_ENABLE");
  if (put != nullptr && std::string_view(put) != "n") {
    return Refused("UCX_TCP_PUT_ENABLE", put,
                   ": no memory protection over TCP (expected n or nothing)");
  }
  const char* devices = std::getenv("UCX_NET_DEVICES");
  if (devices == nullptr || options.trusted_network) return absl::OkStatus();
  for (const absl::string_view device : absl::StrSplit(devices, ',')) {
    if (device == "lo") continue;
    return Refused("UCX_NET_DEVICES", devices,
                   " without --trusted-network: no memory protection, who "
                   "reaches the port can read and write this process");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeUcxTransport(
    const UcxOptions& options) {
  BATON_RETURN_IF_ERROR(CheckEnvironment(options));
  auto engine = std::make_unique<UcxEngine>();
  BATON_RETURN_IF_ERROR(engine->Start(options));
  return engine;
}

}  // namespace baton::transfer
