// Part of PrefillScheduler: what becomes of blocks that were handed over, and
// who gets them once more.
#include <algorithm>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"
#include "common/tokens/prefix_hash.h"
#include "prefill_worker/prefill_scheduler.h"

namespace baton::prefill {
namespace {

absl::Status Bad(std::string_view field, uint64_t got,
                 std::string_view allowed) {
  return absl::InvalidArgumentError(
      StrCat("push.", field, ": got ", got, ", allowed ", allowed));
}

absl::Status CheckForm(const v1::PushPrefix& push) {
  const v1::Ticket& ticket = push.ticket();
  const uint32_t tokens = ticket.token_count();
  if (tokens == 0 || tokens % kBlockTokens != 0) {
    return Bad("ticket.token_count", tokens,
               StrCat("multiples of ", kBlockTokens));
  }
  if (ticket.held_tokens() != 0) {
    return Bad("ticket.held_tokens", ticket.held_tokens(), "0");
  }
  if (ticket.block_count() != tokens / kBlockTokens) {
    return Bad("ticket.block_count", ticket.block_count(),
               StrCat(tokens / kBlockTokens));
  }
  if (push.prefix_hash().size() != sizeof(PrefixHash::digest)) {
    return Bad("prefix_hash", push.prefix_hash().size(),
               StrCat(sizeof(PrefixHash::digest), " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

void PrefillScheduler::KeepPrefix(const Job& job) {
  const uint32_t blocks = job.tokens / kBlockTokens;
  std::vector<TokenId> tokens(size_t{blocks} * kBlockTokens);
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = job.request.ContextToken(i);
  }
  prefixes_.Insert(
      HashPrefixes(PrefixSeed(job.request.prefix_salt, options_.fingerprint),
                   tokens),
      absl::MakeSpan(job.blocks).first(blocks), pool_);
}

void PrefillScheduler::DropUntrusted() {
  if (healthy()) return;
  prefixes_.Clear(pool_);
  for (JobId push : pushes_.Open()) GiveUpPush(pushes_.at(push));
}

void PrefillScheduler::Push(SessionId session, v1::PushPrefix push,
                            MonotonicTime now) {
  const AttemptId attempt(push.attempt_id());
  const LandingId landing(push.ticket().landing_id());
  PrefixPush* earlier = pushes_.Find(session, attempt);
  if (earlier != nullptr && earlier->landing == landing) {
    ++counters_.stale_messages;
    return;
  }
  absl::StatusOr<PrefixPush> found = NewPush(push);
  if (!found.ok()) {
    ++counters_.pushes.refused;
    // What is still being handed over is kept once that is acknowledged.
    const bool yet = absl::IsNotFound(found.status()) &&
                     jobs_.Find(session, attempt) != nullptr;
    RefusePush(session, attempt, landing,
               yet ? absl::UnavailableError("not held yet") : found.status());
    return;
  }
  if (earlier != nullptr) GiveUpPush(*earlier);
  found->session = session;
  found->attempt = attempt;
  found->landing = landing;
  found->deadline = now + std::chrono::milliseconds(std::min(
                              push.deadline_ms(), push.ticket().timeout_ms()));
  if (!BATON_MUTANT("pushed_unheld")) {
    BATON_CHECK(pool_.Hold(found->blocks, BlockUse::kSending).ok());
  }
  const PrefixPush& added = pushes_.Add(*std::move(found));
  actions_.push_back(OpenTransfer{{TransferOwner::Kind::kPrefixPush, added.id},
                                  std::move(*push.mutable_ticket()),
                                  added.deadline});
  BATON_FAILPOINT("prefill.push_prefix");
}

absl::StatusOr<PrefixPush> PrefillScheduler::NewPush(
    const v1::PushPrefix& push) {
  if (absl::Status status = CheckForm(push); !status.ok()) return status;
  if (draining_ || !healthy()) {
    return absl::UnavailableError(draining_ ? "the prefill worker drains"
                                            : health_.WhyUnhealthy());
  }
  if (pushes_.size() >= options_.max_pushes) {
    return absl::ResourceExhaustedError(
        StrCat(options_.max_pushes, " pushes are under way"));
  }
  PrefixHash last;
  std::copy(push.prefix_hash().begin(), push.prefix_hash().end(),
            last.digest.begin());
  PrefixPush found;
  found.blocks = prefixes_.Find(last, push.ticket().block_count());
  if (found.blocks.empty()) return absl::NotFoundError("not held");
  return found;
}

void PrefillScheduler::RefusePush(SessionId session, AttemptId attempt,
                                  LandingId landing, const absl::Status& why) {
  v1::PrefillEvent event;
  v1::PushRefused& refused = *event.mutable_push_refused();
  refused.set_attempt_id(attempt.value());
  refused.set_landing_id(landing.value());
  refused.set_reason(std::string(why.message()));
  refused.set_gone(absl::IsNotFound(why));
  Send(session, std::move(event));
}

void PrefillScheduler::OnPushOpened(PrefixPush& push,
                                    const absl::StatusOr<TransferId>& opened) {
  if (!opened.ok()) {
    if (push.open()) ++counters_.pushes.refused;
    RefusePush(push.session, push.attempt, push.landing,
               absl::UnavailableError(opened.status().message()));
    EndPush(push);
    return;
  }
  push.transfer = *opened;
  transfers_[push.transfer] = {TransferOwner::Kind::kPrefixPush, push.id};
  if (!push.open()) {
    push.phase = PrefixPush::Phase::kClosing;
    actions_.push_back(AbortTransfer{push.transfer});
    return;
  }
  push.phase = PrefixPush::Phase::kSending;
  for (uint32_t ordinal = 0; ordinal < push.blocks.size(); ++ordinal) {
    actions_.push_back(
        PushBlock{push.transfer, ordinal, push.blocks[ordinal], kBlockTokens});
  }
  actions_.push_back(SealTransfer{push.transfer, {}});
}

void PrefillScheduler::OnPushAcked(PrefixPush& push, uint64_t bytes) {
  BATON_FAILPOINT("prefill.push_acked");
  if (push.open()) {
    ++counters_.pushes.acked;
    counters_.pushes.bytes += bytes;
  }
  EndPush(push);
}

void PrefillScheduler::OnPushFailed(PrefixPush& push,
                                    const absl::Status& status) {
  if (!push.open()) return;
  // The receiver has given the landing up.
  const bool unwanted = absl::IsCancelled(status) || absl::IsNotFound(status);
  ++(unwanted ? counters_.pushes.cancelled : counters_.pushes.failed);
  pushes_.Close(push);
  push.phase = PrefixPush::Phase::kClosing;
}

void PrefillScheduler::OnPushClosed(PrefixPush& push) {
  OnPushFailed(push, absl::UnavailableError("closed"));
  EndPush(push);
}

void PrefillScheduler::GiveUpPush(PrefixPush& push) {
  ++counters_.pushes.cancelled;
  pushes_.Close(push);
  if (push.phase == PrefixPush::Phase::kSending) {
    push.phase = PrefixPush::Phase::kClosing;
    actions_.push_back(AbortTransfer{push.transfer});
  } else {
    push.phase = PrefixPush::Phase::kVoid;
    GiveBackBlocks(push);
  }
}

void PrefillScheduler::EndPush(PrefixPush& push) {
  transfers_.erase(push.transfer);
  GiveBackBlocks(push);
  if (push.open()) pushes_.Close(push);
  pushes_.Erase(push.id);
}

void PrefillScheduler::GiveBackBlocks(PrefixPush& push) {
  if (!BATON_MUTANT("pushed_unheld")) {
    BATON_CHECK(pool_.Release(push.blocks, BlockUse::kSending).ok());
  }
  push.blocks.clear();
}

void PrefillScheduler::ExpirePushes(MonotonicTime now) {
  while (PrefixPush* push = pushes_.Expired(now)) GiveUpPush(*push);
}

}  // namespace baton::prefill
