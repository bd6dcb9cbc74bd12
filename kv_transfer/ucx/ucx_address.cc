#include "kv_transfer/ucx/ucx_address.h"

#include <ucp/api/ucp.h>

#include <cstdint>
#include <cstring>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/strings.h"
#include "kv_transfer/transport.h"

namespace baton::transfer {
namespace {

struct Envelope {
  char magic[4];
  uint8_t major;
  uint8_t minor;
  uint16_t length;
  uint32_t crc32c;
};
static_assert(sizeof(Envelope) == 12);

constexpr std::string_view kMagic = "BUCX";

Envelope MakeEnvelope(std::string_view worker_address) {
  Envelope envelope;
  unsigned major;
  unsigned minor;
  unsigned release;
  ucp_get_version(&major, &minor, &release);
  std::memcpy(envelope.magic, kMagic.data(), kMagic.size());
  envelope.major = static_cast<uint8_t>(major);
  envelope.minor = static_cast<uint8_t>(minor);
  envelope.length = static_cast<uint16_t>(worker_address.size());
  envelope.crc32c =
      Crc32c({reinterpret_cast<const std::byte*>(worker_address.data()),
              worker_address.size()});
  return envelope;
}

}  // namespace

std::string WrapUcxAddress(std::string_view worker_address) {
  BATON_CHECK(worker_address.size() + sizeof(Envelope) <= kMaxAddressBytes);
  const Envelope envelope = MakeEnvelope(worker_address);
  std::string address(reinterpret_cast<const char*>(&envelope),
                      sizeof(envelope));
  return address.append(worker_address);
}

absl::StatusOr<std::string_view> UnwrapUcxAddress(std::string_view address) {
  if (address.size() <= sizeof(Envelope) || address.size() > kMaxAddressBytes) {
    return absl::InvalidArgumentError(
        StrCat("address: got ", address.size(), " bytes, allowed ",
               sizeof(Envelope) + 1, "..", kMaxAddressBytes));
  }
  const std::string_view inside = address.substr(sizeof(Envelope));
  Envelope got;
  std::memcpy(&got, address.data(), sizeof(got));
  const Envelope expected = MakeEnvelope(inside);
  if (std::memcmp(got.magic, expected.magic, sizeof(got.magic)) != 0) {
    return absl::InvalidArgumentError("address: not one of a ucx transport");
  }
  if (got.major != expected.major || got.minor != expected.minor) {
    return absl::InvalidArgumentError(
        StrCat("address: of UCX ", got.major, ".", got.minor,
               ", this process runs ", expected.major, ".", expected.minor));
  }
  if (got.length != expected.length || got.crc32c != expected.crc32c) {
    return absl::InvalidArgumentError("address: damaged");
  }
  return inside;
}

}  // namespace baton::transfer
