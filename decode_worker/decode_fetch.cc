// Part of DecodeScheduler: what a holder pushes back to preempted attempts.
#include <algorithm>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/cost_model/throughput.h"
#include "common/tokens/prefix_hash.h"
#include "decode_worker/decode_scheduler.h"

namespace baton::decode {
namespace {

// Of the last whole block of the context, as it was handed over.
PrefixHash ContextHash(const DecodeJob& job, std::string_view fingerprint) {
  PrefixHash hash = PrefixSeed(job.request.prefix_salt, fingerprint);
  std::vector<TokenId> tokens(kBlockTokens);
  for (uint32_t block = 0; block < job.demand.shared; ++block) {
    for (uint32_t i = 0; i < kBlockTokens; ++i) {
      tokens[i] = job.request.ContextToken(block * kBlockTokens + i);
    }
    hash = ExtendPrefix(hash, tokens);
  }
  return hash;
}

}  // namespace

uint32_t DecodeScheduler::fetching() const {
  return static_cast<uint32_t>(
      std::count_if(jobs_.begin(), jobs_.end(),
                    [](const auto& entry) { return entry.second.fetching(); }));
}

bool DecodeScheduler::Fetches(const DecodeJob& job, MonotonicTime now) const {
  const bool held = !job.local && job.branched && job.demand.shared > 0;
  // What a holder let go of it never has again.
  if (!held || job.context_gone || job.fetch.has_value()) return false;
  std::optional<double> recompute_seconds;
  if (costs_.has_value()) {
    recompute_seconds =
        PrefillSeconds(costs_->costs(), job.demand.shared * kBlockTokens,
                       PromptTokensBeside({}));
  }
  return return_choice_.Pushes(job.demand.shared * options_.block_bytes,
                               recompute_seconds, now);
}

void DecodeScheduler::Fetch(DecodeJob& job, std::vector<BlockRef> blocks,
                            MonotonicTime now) {
  Duration patience = std::min(
      return_choice_.Patience(blocks.size() * options_.block_bytes, now),
      job.deadline - now);
  if (BATON_MUTANT("fetch_without_deadline")) patience = job.deadline - now;
  job.phase = Phase::kFetching;
  ContextFetch& fetch = job.fetch.emplace();
  fetch.blocks = std::move(blocks);
  fetch.asked = now;
  fetch.deadline = now + patience;
  actions_.push_back(OpenLanding{job.id, fetch.blocks,
                                 job.demand.shared * kBlockTokens, patience});
  BATON_FAILPOINT("decode.fetch");
}

void DecodeScheduler::OnFetchOpened(DecodeJob& job, LandingOpened event,
                                    MonotonicTime now) {
  ContextFetch& fetch = *job.fetch;
  if (!event.ticket.ok()) {
    FailFetch(job, now);
    EndFetch(job, /*arrived=*/false, now);
    return;
  }
  fetch.landing = LandingId(event.ticket->landing_id());
  landings_[*fetch.landing] = job.id;
  if (fetch.given_up) {
    actions_.emplace_back(CancelLanding{*fetch.landing});
    return;
  }
  const PrefixHash hash = ContextHash(job, options_.fingerprint);
  v1::DecodeEvent event_out;
  v1::PushWanted& wanted = *event_out.mutable_push_wanted();
  wanted.set_attempt_id(job.attempt.value());
  *wanted.mutable_ticket() = *std::move(event.ticket);
  wanted.set_prefix_hash(std::string(hash.digest.begin(), hash.digest.end()));
  wanted.set_deadline_ms(
      static_cast<uint32_t>(std::max(Milliseconds(fetch.deadline - now), 1.0)));
  Send(job.session, std::move(event_out));
  BATON_FAILPOINT("decode.push_wanted");
}

void DecodeScheduler::OnFetchEvent(DecodeJob& job,
                                   const transfer::TransferEvent& event,
                                   MonotonicTime now) {
  ContextFetch& fetch = *job.fetch;
  if (auto* verified = std::get_if<transfer::LandingVerified>(&event)) {
    const bool arrived = verified->seal.first_tokens().empty();
    if (!arrived) {
      FailFetch(job, now);
    } else if (job.fetching()) {
      return_choice_.Pushed(verified->bytes, now - fetch.asked, now);
    }
    if (arrived && job.phase == Phase::kFetching) {
      counters_.fetched_blocks += verified->blocks;
      counters_.fetched_bytes += verified->bytes;
    }
    EndFetch(job, arrived, now);
  } else if (std::holds_alternative<transfer::LandingFailed>(event)) {
    if (fetch.given_up) return;
    fetch.failed = true;
    FailFetch(job, now);
    GiveUpFetch(job);
  } else if (std::holds_alternative<transfer::LandingClosed>(event)) {
    FailFetch(job, now);
    EndFetch(job, /*arrived=*/false, now);
  }
}

void DecodeScheduler::FailFetch(const DecodeJob& job, MonotonicTime now) {
  if (!job.fetching()) return;
  ++counters_.failed_fetches;
  return_choice_.Failed(now - job.fetch->asked, now);
}

void DecodeScheduler::On(SessionId session, const v1::PushRefused& refused,
                         MonotonicTime now) {
  DecodeJob* job = jobs_.Find(session, AttemptId(refused.attempt_id()));
  if (job == nullptr || !job->fetching() ||
      job->fetch->landing != LandingId(refused.landing_id())) {
    ++counters_.stale_messages;
    return;
  }
  ++counters_.refused_fetches;
  return_choice_.Refused(now - job->fetch->asked, now);
  job->context_gone = refused.gone();
  GiveUpFetch(*job);
  BATON_FAILPOINT("decode.push_refused");
}

void DecodeScheduler::GiveUpFetch(DecodeJob& job) {
  ContextFetch& fetch = *job.fetch;
  if (fetch.given_up) return;
  fetch.given_up = true;
  standstill_ = kNever;  // its blocks come free later
  BATON_CHECK(
      pool_.Move(fetch.blocks, BlockUse::kLanding, BlockUse::kQuarantine).ok());
  if (fetch.landing.has_value() && !fetch.failed) {
    actions_.emplace_back(CancelLanding{*fetch.landing});
  }
}

void DecodeScheduler::EndFetch(DecodeJob& job, bool arrived,
                               MonotonicTime now) {
  const ContextFetch fetch = *std::exchange(job.fetch, std::nullopt);
  if (fetch.landing.has_value()) landings_.erase(*fetch.landing);
  const BlockUse use =
      fetch.given_up ? BlockUse::kQuarantine : BlockUse::kLanding;
  if (job.phase != Phase::kFetching) {
    BATON_CHECK(pool_.Release(fetch.blocks, use).ok());
    EraseIfOver(job);
    return;
  }
  BATON_CHECK(pool_.Move(fetch.blocks, use, BlockUse::kRunning).ok());
  job.TakeSharedBlocks(fetch.blocks);
  if (!arrived) {
    ++counters_.recomputed_returns;
    Recompute(job, 0, now);
    return;
  }
  ++counters_.pushed_returns;
  Recompute(job,
            BATON_MUTANT("fetched_tail_not_recomputed")
                ? job.request.context_tokens
                : job.demand.shared * kBlockTokens,
            now);
}

}  // namespace baton::decode
