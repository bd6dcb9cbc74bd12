#include "kv_transfer/landing_table.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace baton::transfer {
namespace {

absl::Status CheckTerms(const Begin& got, const Begin& expected) {
  if (got.fingerprint != expected.fingerprint) {
    return absl::InvalidArgumentError(
        "fingerprint: this KV is not exchangeable with the receiver's");
  }
  const struct {
    std::string_view field;
    uint64_t got;
    uint64_t expected;
  } numbers[] = {
      {"token_count", got.token_count, expected.token_count},
      {"held_tokens", got.held_tokens, expected.held_tokens},
      {"block_count", got.block_count, expected.block_count},
      {"block_bytes", got.block_bytes, expected.block_bytes},
  };
  for (const auto& number : numbers) {
    if (number.got == number.expected) continue;
    return absl::InvalidArgumentError(StrCat(number.field, ": got ", number.got,
                                             ", allowed ", number.expected));
  }
  return absl::OkStatus();
}

}  // namespace

LandingTable::LandingTable(const TransferOptions* options)
    : options_(options) {}

void LandingTable::Add(const Ticket& ticket, LandingSpec spec,
                       MonotonicTime deadline) {
  auto terms = CheckTicket(ticket, *options_, ticket.transport());
  BATON_CHECK(terms.ok());
  const LandingId id = terms->key.landing;
  const bool added =
      landings_
          .try_emplace(id, *terms, std::move(spec), options_->layout.layers)
          .second;
  BATON_CHECK(added);
  deadlines_.Set(id, deadline);
}

absl::StatusOr<Landing*> LandingTable::Redeem(LinkId link,
                                              const TransferKey& key,
                                              const Begin& begin,
                                              MonotonicTime now) {
  if (begin.epoch != options_->epoch) {
    return absl::FailedPreconditionError(
        StrCat("worker_epoch: got ", begin.epoch.value(),
               ", a ticket of an earlier life of this worker"));
  }
  Landing* landing = Find(key.landing);
  if (landing == nullptr ||
      !ConstantTimeEqual(landing->key().nonce, key.nonce)) {
    return absl::NotFoundError("landing: no such landing is open");
  }
  if (landing->state() != LandingState::kReserved) {
    if (landing->link() == link && landing->key() == key) return nullptr;
    return absl::AlreadyExistsError("landing: the ticket was redeemed already");
  }
  if (absl::Status terms = CheckTerms(begin, landing->terms().begin);
      !terms.ok()) {
    return terms;
  }
  landing->Begin(link, key.transfer, now);
  return landing;
}

Landing* LandingTable::Find(LinkId link, const TransferKey& key) {
  Landing* landing = Find(key.landing);
  if (landing == nullptr || landing->state() == LandingState::kReserved ||
      landing->link() != link || landing->key().transfer != key.transfer ||
      !ConstantTimeEqual(landing->key().nonce, key.nonce)) {
    return nullptr;
  }
  return landing;
}

Landing* LandingTable::Find(LandingId id) {
  auto it = landings_.find(id);
  return it == landings_.end() ? nullptr : &it->second;
}

std::vector<LandingId> LandingTable::OnLink(LinkId link) const {
  std::vector<LandingId> ids;
  for (const auto& [id, landing] : landings_) {
    if (landing.state() != LandingState::kReserved && landing.link() == link) {
      ids.push_back(id);
    }
  }
  return ids;
}

void LandingTable::Remove(LandingId id) {
  landings_.erase(id);
  deadlines_.Clear(id);
}

void LandingTable::SetDeadline(LandingId id, MonotonicTime when) {
  deadlines_.Set(id, when);
}

Landing* LandingTable::PopDue(MonotonicTime now) {
  const std::optional<LandingId> due = deadlines_.PopDue(now);
  return due ? Find(*due) : nullptr;
}

}  // namespace baton::transfer
