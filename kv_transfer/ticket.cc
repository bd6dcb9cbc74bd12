#include "kv_transfer/ticket.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "common/base/strings.h"

namespace baton::transfer {
namespace {

constexpr uint32_t kBlockTokens = kernels::KvLayout::kTokens;

uint32_t BlocksFor(uint32_t tokens) {
  return tokens / kBlockTokens + (tokens % kBlockTokens != 0);
}

absl::Status Refuse(std::string_view field, uint64_t got,
                    std::string_view allowed) {
  return absl::InvalidArgumentError(
      StrCat(field, ": got ", got, ", allowed ", allowed));
}

absl::Status CheckCounts(uint32_t tokens, uint32_t held, uint32_t blocks) {
  if (tokens == 0 || BlocksFor(tokens) > kMaxBlocksPerTransfer) {
    return Refuse("token_count", tokens,
                  StrCat("1..", kMaxBlocksPerTransfer * kBlockTokens));
  }
  if (blocks != BlocksFor(tokens)) {
    return Refuse("block_count", blocks,
                  StrCat(BlocksFor(tokens), " for ", tokens, " tokens"));
  }
  if (held > tokens || held % kBlockTokens != 0) {
    return Refuse("held_tokens", held,
                  StrCat("multiples of ", kBlockTokens, " up to ", tokens));
  }
  return absl::OkStatus();
}

}  // namespace

uint32_t TransferTerms::held_blocks() const {
  return begin.held_tokens / kBlockTokens;
}

uint32_t TransferTerms::WrittenTokens(uint32_t ordinal) const {
  return std::min(kBlockTokens, begin.token_count - ordinal * kBlockTokens);
}

absl::Status CheckLandingSpec(const LandingSpec& spec,
                              const TransferOptions& options) {
  if (spec.blocks.size() > kMaxBlocksPerTransfer) {
    return Refuse("blocks", spec.blocks.size(),
                  StrCat("at most ", kMaxBlocksPerTransfer));
  }
  if (absl::Status counts =
          CheckCounts(spec.token_count, spec.held_tokens,
                      static_cast<uint32_t>(spec.blocks.size()));
      !counts.ok()) {
    return counts;
  }
  if (spec.memory.size() != spec.blocks.size()) {
    return Refuse("memory", spec.memory.size(),
                  StrCat(spec.blocks.size(), ", one per block"));
  }
  if (std::ranges::find(spec.memory, nullptr) != spec.memory.end()) {
    return absl::InvalidArgumentError("memory: null");
  }
  for (const BlockRef& block : spec.blocks) {
    if (block.epoch == options.epoch) continue;
    return Refuse("blocks.epoch", block.epoch.value(),
                  StrCat(options.epoch.value()));
  }
  if (spec.timeout <= Duration::zero()) {
    return absl::InvalidArgumentError("timeout: must be positive");
  }
  return absl::OkStatus();
}

Ticket IssueTicket(const LandingSpec& spec, const TransferOptions& options,
                   std::string_view transport, std::string_view address) {
  Nonce nonce;
  options.random(absl::MakeSpan(nonce));
  uint64_t landing = 0;
  while (landing == 0) {
    options.random({reinterpret_cast<std::byte*>(&landing), sizeof(landing)});
  }
  const auto timeout =
      std::chrono::ceil<std::chrono::milliseconds>(spec.timeout);
  Ticket ticket;
  ticket.set_landing_id(landing);
  ticket.set_nonce(nonce.data(), nonce.size());
  ticket.set_worker_epoch(options.epoch.value());
  ticket.set_transport(std::string(transport));
  ticket.set_address(std::string(address));
  ticket.set_fingerprint(options.fingerprint);
  ticket.set_token_count(spec.token_count);
  ticket.set_held_tokens(spec.held_tokens);
  ticket.set_block_count(static_cast<uint32_t>(spec.blocks.size()));
  ticket.set_timeout_ms(
      static_cast<uint32_t>(std::min<int64_t>(timeout.count(), UINT32_MAX)));
  return ticket;
}

absl::StatusOr<TransferTerms> CheckTicket(const Ticket& ticket,
                                          const TransferOptions& options,
                                          std::string_view transport) {
  if (ticket.landing_id() == 0) return Refuse("ticket.landing_id", 0, "not 0");
  if (ticket.nonce().size() != kNonceBytes) {
    return Refuse("ticket.nonce", ticket.nonce().size(),
                  StrCat(kNonceBytes, " bytes"));
  }
  if (ticket.transport() != transport) {
    return absl::InvalidArgumentError(StrCat("ticket.transport: got '",
                                             ticket.transport().substr(0, 32),
                                             "', allowed '", transport, "'"));
  }
  if (ticket.address().empty() || ticket.address().size() > kMaxAddressBytes) {
    return Refuse("ticket.address", ticket.address().size(),
                  StrCat("1..", kMaxAddressBytes, " bytes"));
  }
  if (ticket.fingerprint().size() != kFingerprintBytes) {
    return Refuse("ticket.fingerprint", ticket.fingerprint().size(),
                  StrCat(kFingerprintBytes, " bytes"));
  }
  if (ticket.fingerprint() != options.fingerprint) {
    return absl::InvalidArgumentError(
        "ticket.fingerprint: the receiver's KV is not exchangeable with "
        "this worker's");
  }
  if (absl::Status counts = CheckCounts(
          ticket.token_count(), ticket.held_tokens(), ticket.block_count());
      !counts.ok()) {
    return absl::InvalidArgumentError(
        StrCat("ticket.", ToStd(counts.message())));
  }
  TransferTerms terms;
  terms.key.landing = LandingId(ticket.landing_id());
  std::memcpy(terms.key.nonce.data(), ticket.nonce().data(), kNonceBytes);
  terms.begin.epoch = WorkerEpoch(ticket.worker_epoch());
  std::memcpy(terms.begin.fingerprint.data(), ticket.fingerprint().data(),
              kFingerprintBytes);
  terms.begin.token_count = ticket.token_count();
  terms.begin.held_tokens = ticket.held_tokens();
  terms.begin.block_count = ticket.block_count();
  terms.begin.block_bytes = options.layout.block_bytes();
  terms.address = ticket.address();
  return terms;
}

}  // namespace baton::transfer
