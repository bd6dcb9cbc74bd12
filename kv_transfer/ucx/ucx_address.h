#ifndef BATON_KV_TRANSFER_UCX_UCX_ADDRESS_H_
#define BATON_KV_TRANSFER_UCX_UCX_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton::transfer {

// A UCX worker address in an envelope that tells bytes of another kind, of
// another UCX release, or damaged on their way from it, because UCX itself
// trusts what it unpacks:
//   "BUCX", UCX major u8, UCX minor u8, length u16, crc32c u32, address
std::string WrapUcxAddress(std::string_view worker_address);

// The worker address inside; INVALID_ARGUMENT says what is wrong.
absl::StatusOr<std::string_view> UnwrapUcxAddress(std::string_view address);

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_UCX_UCX_ADDRESS_H_
