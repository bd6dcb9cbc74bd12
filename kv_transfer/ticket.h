#ifndef BATON_KV_TRANSFER_TICKET_H_
#define BATON_KV_TRANSFER_TICKET_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kv_transfer/transfer_core.h"
#include "kv_transfer/wire.h"

namespace baton::transfer {

inline constexpr uint32_t kMaxBlocksPerTransfer = 1u << 20;

// What BEGIN says for a ticket, or must say for a landing.
struct TransferTerms {
  TransferKey key;  // the transfer id is the holder's to fill in
  Begin begin;
  std::string address;

  // Leading blocks that the receiver holds already and that never travel.
  uint32_t held_blocks() const;
  // Tokens that block `ordinal` carries.
  uint32_t WrittenTokens(uint32_t ordinal) const;
};

// INVALID_ARGUMENT names the field of `spec` that contradicts another.
absl::Status CheckLandingSpec(const LandingSpec& spec,
                              const TransferOptions& options);

// A ticket for a checked spec, with an id and a nonce from options.random.
Ticket IssueTicket(const LandingSpec& spec, const TransferOptions& options,
                   std::string_view transport, std::string_view address);

// The terms of a ticket for a holder with these options that uses `transport`;
// INVALID_ARGUMENT names the field that is malformed or does not fit.
absl::StatusOr<TransferTerms> CheckTicket(const Ticket& ticket,
                                          const TransferOptions& options,
                                          std::string_view transport);

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_TICKET_H_
