// Part of DecodeScheduler: accepting attempts, landings, block tables.
#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"
#include "decode_worker/decode_scheduler.h"

namespace baton::decode {

template <class Wanted>
DecodeJob* DecodeScheduler::Accept(SessionId session, const Wanted& command,
                                   bool local, MonotonicTime now) {
  ++counters_.attempts;
  const AttemptId attempt(command.attempt_id());
  accounts_.Asked(session, attempt);
  absl::StatusOr<SequenceRequest> request = ParseSequenceSpec(
      command.sequence(), options_.limits, options_.vocabulary);
  if (!request.ok()) {
    SendFailure(session, attempt, request.status(), false,
                v1::FAILURE_CAUSE_REQUEST);
    return nullptr;
  }
  DecodeJob job;
  job.session = session;
  job.attempt = attempt;
  job.demand = BlockDemand::Of(*request);
  job.request = *std::move(request);
  job.local = local;
  job.credit = local ? job.request.context_tokens : 0;
  job.deadline = now + std::chrono::milliseconds(command.deadline_ms());
  const size_t choices = job.request.choices.size();
  if (job.demand.total() > pool_.size() || choices > options_.max_sequences) {
    SendFailure(session, attempt,
                absl::ResourceExhaustedError(StrCat(
                    "never fits: needs ", job.demand.total(), " blocks and ",
                    choices, " sequences, this worker has ", pool_.size(),
                    " and ", options_.max_sequences)),
                false, v1::FAILURE_CAUSE_REQUEST);
    return nullptr;
  }
  const AdmissionTurn::Request in_turn = {
      session, command.request_id(), attempt, job.request.priority,
      now - std::chrono::milliseconds(command.waited_ms())};
  std::string reason = WhyClosed();
  if (reason.empty()) {
    reason = WhyNoRoom(job);
    if (!reason.empty()) turn_.Refused(in_turn, now);
  }
  if (reason.empty()) {
    reason = turn_.WhyNot(in_turn, now);
    if (!reason.empty()) turn_.PutOff(in_turn, now);
  }
  if (!reason.empty()) {
    Refuse(session, attempt, std::move(reason));
    return nullptr;
  }
  turn_.Accepted(in_turn);
  const BlockUse use = local ? BlockUse::kRunning : BlockUse::kLanding;
  absl::StatusOr<std::vector<BlockRef>> blocks =
      pool_.Acquire(job.demand.context, use);
  BATON_CHECK(blocks.ok());
  job.context = *std::move(blocks);
  job.context_use = use;
  sequences_ += static_cast<uint32_t>(choices);
  BATON_FAILPOINT("decode.accept");
  return &jobs_.Add(std::move(job));
}

void DecodeScheduler::Reserve(SessionId session,
                              const v1::ReserveLanding& command,
                              MonotonicTime now) {
  const AttemptId attempt(command.attempt_id());
  if (const DecodeJob* known = jobs_.Find(session, attempt)) {
    ++counters_.stale_messages;
    if (known->local || known->phase == Phase::kOpening) return;
    v1::DecodeEvent event;
    event.mutable_reserved()->set_attempt_id(attempt.value());
    *event.mutable_reserved()->mutable_ticket() = known->ticket;
    Send(session, std::move(event));
    return;
  }
  DecodeJob* job = Accept(session, command, /*local=*/false, now);
  if (job == nullptr) return;
  job->phase = Phase::kOpening;
  actions_.push_back(
      OpenLanding{job->id, job->context, job->request.context_tokens,
                  std::min(options_.landing_timeout, job->deadline - now)});
}

void DecodeScheduler::Serve(SessionId session, const v1::ServeLocally& command,
                            MonotonicTime now) {
  const AttemptId attempt(command.attempt_id());
  if (jobs_.Find(session, attempt) != nullptr) {
    ++counters_.stale_messages;
    return;
  }
  DecodeJob* job = Accept(session, command, /*local=*/true, now);
  if (job == nullptr) {
    const uint64_t tokens = ContextTokensOf(command.sequence());
    accounts_.ReturnTokens(session, tokens, tokens);
    return;
  }
  job->ready = now;
  job->phase = Phase::kReady;
}

void DecodeScheduler::Refuse(SessionId session, AttemptId attempt,
                             std::string reason) {
  ++counters_.refused;
  v1::DecodeEvent event;
  v1::Refused& refused = *event.mutable_refused();
  refused.set_attempt_id(attempt.value());
  refused.set_reason(std::move(reason));
  refused.set_retry_after_ms(
      static_cast<uint32_t>(Milliseconds(options_.retry_after)));
  Send(session, std::move(event));
}

std::string DecodeScheduler::WhyClosed() const {
  if (draining_) return "draining";
  if (!healthy()) return StrCat("unhealthy: ", health_.WhyUnhealthy());
  return "";
}

std::string DecodeScheduler::WhyNoRoom(const DecodeJob& job) const {
  const Ledger& ledger = pool_.ledger();
  if (std::string full =
          cap_.WhyFull(costs_.has_value() ? &*costs_ : nullptr, AcceptedBatch(),
                       static_cast<uint32_t>(job.request.choices.size()),
                       job.request.context_tokens + 1);
      !full.empty()) {
    return full;
  }
  if (waiting_ > 0) {
    return StrCat("blocks: ", waiting_, " attempts wait for some");
  }
  if (job.demand.context > ledger.free) {
    return StrCat("blocks: ", ledger.free, " are free, ", job.demand.context,
                  " wanted");
  }
  if (!FitsWithout(job, {})) {
    return StrCat("blocks: ", PredictedPeak(&job), " in use at the peak, ",
                  AllowedPeak(), " allowed");
  }
  const uint32_t landing =
      ledger[BlockUse::kLanding] + ledger[BlockUse::kQuarantine];
  const double limit = options_.landing_fraction * pool_.size();
  if (!job.local && landing > 0 && landing + job.demand.context > limit) {
    return StrCat("landings: ", landing, " of ", std::floor(limit),
                  " blocks are taken, ", job.demand.context, " wanted");
  }
  return "";
}

DecodeBatch DecodeScheduler::AcceptedBatch() const {
  DecodeBatch batch;
  for (const auto& [id, job] : jobs_) {
    if (job.phase == Phase::kClosing) continue;
    if (!job.branched) {
      batch = batch.With(job.request.choices.size(),
                         job.request.context_tokens + 1);
    }
    for (const Branch& branch : job.branches) {
      batch = batch.With(1, branch.sequence->length());
    }
  }
  return batch;
}

void DecodeScheduler::Release(SessionId session, AttemptId attempt) {
  DecodeJob* job = jobs_.Find(session, attempt);
  if (job == nullptr || BATON_MUTANT("lost_release")) {
    if (!turn_.Withdrawn(session, attempt)) ++counters_.stale_messages;
    return;
  }
  ++counters_.released;
  BATON_FAILPOINT("decode.release");
  Close(*job);
}

void DecodeScheduler::On(LandingOpened event, MonotonicTime now) {
  DecodeJob& job = jobs_.at(event.job);
  if (job.fetch.has_value()) {
    OnFetchOpened(job, std::move(event), now);
    return;
  }
  const bool closing = job.phase == Phase::kClosing;
  BATON_CHECK(closing || job.phase == Phase::kOpening);
  if (!event.ticket.ok()) {
    if (closing) {
      OnLandingOver(job);
      return;
    }
    job.phase = Phase::kReady;  // no transfer knows the blocks
    const bool full = absl::IsResourceExhausted(event.ticket.status());
    Close(job, event.ticket.status(), true,
          full ? v1::FAILURE_CAUSE_LOAD : v1::FAILURE_CAUSE_WORKER);
    return;
  }
  job.landing = LandingId(event.ticket->landing_id());
  landings_[*job.landing] = job.id;
  if (closing) {
    actions_.emplace_back(CancelLanding{*job.landing});
    return;
  }
  job.phase = Phase::kLanding;
  job.ticket = *std::move(event.ticket);
  BATON_FAILPOINT("decode.reserved");
  v1::DecodeEvent reserved;
  reserved.mutable_reserved()->set_attempt_id(job.attempt.value());
  *reserved.mutable_reserved()->mutable_ticket() = job.ticket;
  Send(job.session, std::move(reserved));
}

void DecodeScheduler::On(transfer::TransferEvent event, MonotonicTime now) {
  // Null also if what lands is fetched: then all is done.
  auto find = [&](LandingId landing) -> DecodeJob* {
    auto it = landings_.find(landing);
    if (it == landings_.end()) {
      ++counters_.stale_messages;
      return nullptr;
    }
    DecodeJob& job = jobs_.at(it->second);
    if (!job.fetch.has_value() || job.fetch->landing != landing) return &job;
    OnFetchEvent(job, event, now);
    return nullptr;
  };
  if (auto* verified = std::get_if<transfer::LandingVerified>(&event)) {
    if (DecodeJob* job = find(verified->landing)) {
      OnVerified(*job, *verified, now);
    }
  } else if (auto* progress = std::get_if<transfer::LandingProgress>(&event)) {
    DecodeJob* job = find(progress->landing);
    if (job == nullptr || job->phase == Phase::kClosing) return;
    v1::DecodeEvent arriving;
    arriving.mutable_landing_progress()->set_attempt_id(job->attempt.value());
    arriving.mutable_landing_progress()->set_blocks(progress->blocks);
    Send(job->session, std::move(arriving));
  } else if (auto* failed = std::get_if<transfer::LandingFailed>(&event)) {
    DecodeJob* job = find(failed->landing);
    if (job == nullptr || job->phase == Phase::kClosing) return;
    ++counters_.transfer_failures;
    job->landing_failed = true;
    BATON_FAILPOINT("decode.landing_failed");
    // When the holder cancelled, the router hears why from the holder; a word
    // from here could overtake first tokens that ended the answer.
    const bool cancelled = absl::IsCancelled(failed->status);
    Close(*job,
          cancelled ? absl::OkStatus()
                    : absl::UnavailableError(
                          StrCat("KV landing: ", failed->status.ToString())),
          true, v1::FAILURE_CAUSE_TRANSFER);
  } else if (auto* closed = std::get_if<transfer::LandingClosed>(&event)) {
    DecodeJob* job = find(closed->landing);
    if (job == nullptr) return;
    if (job->phase != Phase::kClosing) {
      Close(*job, absl::UnavailableError("KV landing was closed"), true,
            v1::FAILURE_CAUSE_TRANSFER);
    }
    OnLandingOver(*job);
  } else {
    ++counters_.stale_messages;
  }
}

void DecodeScheduler::OnLandingOver(DecodeJob& job) {
  if (job.landing.has_value()) landings_.erase(*job.landing);
  job.landing.reset();
  BATON_FAILPOINT("decode.landing_over");
  ReleaseBlocks(job.context, &job.context_use);
  EraseIfOver(job);
}

void DecodeScheduler::OnVerified(DecodeJob& job,
                                 const transfer::LandingVerified& verified,
                                 MonotonicTime now) {
  if (job.phase == Phase::kClosing) {
    OnLandingOver(job);
    return;
  }
  BATON_CHECK(job.phase == Phase::kLanding);
  landings_.erase(*job.landing);
  job.landing.reset();
  job.phase = Phase::kReady;
  job.ready = now;
  MoveBlocks(job.context, &job.context_use, BlockUse::kRunning);
  ++counters_.landed;
  BATON_FAILPOINT("decode.landed");
  if (absl::Status status = AppendSealed(job, verified.seal); !status.ok()) {
    Close(job, status, true, v1::FAILURE_CAUSE_TRANSFER);
    return;
  }
  v1::DecodeEvent event;
  v1::Landed& landed = *event.mutable_landed();
  landed.set_attempt_id(job.attempt.value());
  landed.set_bytes(verified.bytes);
  landed.set_blocks(verified.blocks);
  landed.set_transfer_ms(Milliseconds(verified.transfer_time));
  landed.set_transport(options_.transport);
  Send(job.session, std::move(event));
  MakeBranches(job);
  if (job.branches.empty()) Finish(job, now);
}

absl::Status DecodeScheduler::AppendSealed(DecodeJob& job,
                                           const v1::SealContents& seal) {
  std::vector<Sequence>& choices = job.request.choices;
  if (static_cast<size_t>(seal.first_tokens_size()) != choices.size()) {
    return absl::DataLossError(StrCat("seal.first_tokens: got ",
                                      seal.first_tokens_size(), ", allowed ",
                                      choices.size()));
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    const v1::TokenDelta& first = seal.first_tokens(static_cast<int>(i));
    if (first.choice() != choices[i].choice() ||
        first.index() != choices[i].generated().size() ||
        first.token_id() >= options_.limits.vocabulary_size) {
      return absl::DataLossError(
          StrCat("seal.first_tokens[", i, "]: choice ", first.choice(),
                 ", index ", first.index(), ", token ", first.token_id(),
                 " do not continue choice ", choices[i].choice()));
    }
  }
  for (size_t i = 0; i < choices.size(); ++i) {
    const Sequence::Appended appended =
        choices[i].Append(seal.first_tokens(static_cast<int>(i)).token_id());
    if (appended.finish.has_value()) NoteLength(choices[i], *appended.finish);
  }
  return absl::OkStatus();
}

void DecodeScheduler::MakeBranches(DecodeJob& job) {
  const BlockDemand& demand = job.demand;
  const bool partial = demand.context > demand.shared;
  const absl::Span<const BlockRef> shared(job.context.data(), demand.shared);
  auto reserve = job.reserve.begin();
  for (Sequence& choice : job.request.choices) {
    if (choice.finished()) {
      --sequences_;
      continue;
    }
    Branch branch{&choice, {}, std::nullopt};
    if (job.branches.empty()) {
      branch.blocks = job.context;
    } else {
      BATON_CHECK(pool_.Hold(shared, BlockUse::kRunning).ok());
      branch.blocks.assign(shared.begin(), shared.end());
      if (partial) branch.copy_of = job.context.back();
    }
    if (!job.reserve.empty()) {
      const size_t own = demand.per_choice - branch.blocks.size();
      branch.blocks.insert(branch.blocks.end(), reserve, reserve + own);
      reserve += own;
    }
    job.branches.push_back(std::move(branch));
  }
  job.branched = true;
  job.reserve.erase(job.reserve.begin(), reserve);
  BATON_CHECK(pool_.Release(job.reserve, BlockUse::kRunning).ok());
  job.reserve.clear();
  if (job.branches.empty()) {
    ReleaseBlocks(job.context, &job.context_use);
  } else {
    job.context_use.reset();
  }
}

}  // namespace baton::decode
