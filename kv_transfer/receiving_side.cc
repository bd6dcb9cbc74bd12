#include "kv_transfer/receiving_side.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/strings.h"

namespace baton::transfer {

ReceivingSide::ReceivingSide(CoreContext* context)
    : context_(context), table_(&context->options) {}

void ReceivingSide::Adopt(const Ticket& ticket, LandingSpec spec) {
  BATON_FAILPOINT("landing.adopt");
  const MonotonicTime deadline = context_->now + spec.timeout;
  table_.Add(ticket, std::move(spec), deadline);
}

void ReceivingSide::Cancel(LandingId id) {
  Landing* landing = table_.Find(id);
  if (landing == nullptr) return;
  if (landing->state() == LandingState::kReserved) {
    context_->events.push_back(LandingClosed{id});
    table_.Remove(id);
  } else if (landing->state() == LandingState::kReceiving) {
    Abort(landing, absl::CancelledError("the receiver cancelled"));
    CloseIfOver(landing);
  }
}

absl::Span<std::byte> ReceivingSide::OnHeader(LinkId link,
                                              const Message& message,
                                              size_t payload_bytes) {
  const TransferKey& key = message.key;
  if (const auto* begin = std::get_if<Begin>(&message.body)) {
    OnBegin(link, key, *begin);
    return {};
  }
  if (const auto* abort = std::get_if<AbortNotice>(&message.body)) {
    OnAbort(link, key, *abort);
    return {};
  }
  if (std::holds_alternative<AbortAck>(message.body)) {
    OnAbortAck(link, key);
    return {};
  }
  Landing* landing = table_.Find(link, key);
  const auto* seal = std::get_if<SealMark>(&message.body);
  if (landing == nullptr || landing->state() != LandingState::kReceiving) {
    ++context_->counters.stale_messages;
    if (landing == nullptr && seal != nullptr) {
      Refuse(link, key, absl::NotFoundError("landing: no transfer has begun"));
    }
    return {};
  }
  if (seal != nullptr) return OnSealMark(landing, *seal, payload_bytes);

  ++context_->counters.frames_received;
  const auto place =
      landing->PostFrame(std::get<Frame>(message.body), payload_bytes);
  if (!place.ok()) {
    Fail(landing, place.status());
    return {};
  }
  if (place->empty()) ++context_->counters.stale_messages;
  return *place;
}

void ReceivingSide::OnBegin(LinkId link, const TransferKey& key,
                            const Begin& begin) {
  if (context_->adopt && table_.Find(key.landing) == nullptr) {
    context_->adopt();
  }
  const auto landing = table_.Redeem(link, key, begin, context_->now);
  if (!landing.ok()) {
    Refuse(link, key, landing.status());
    return;
  }
  if (*landing == nullptr) {
    ++context_->counters.stale_messages;
    return;
  }
  BATON_FAILPOINT("landing.begin");
  context_->links.Use(link);
  context_->links.Accepted(link);
  VerifyIfComplete(*landing);
}

void ReceivingSide::Refuse(LinkId link, const TransferKey& key,
                           const absl::Status& status) {
  ++context_->counters.refused_begins;
  const AbortNotice notice = NoticeOf(status);
  context_->SendControl(link, Recipient::kHolder, key,
                        Refusal{notice.code, notice.reason});
  if (context_->links.Refused(link, context_->now)) {
    ++context_->counters.cut_off_peers;
  }
}

void ReceivingSide::RefuseVersion(LinkId link, const TransferKey& key,
                                  const absl::Status& status) {
  Refuse(link, key, status);
}

absl::Span<std::byte> ReceivingSide::OnSealMark(Landing* landing,
                                                const SealMark& seal,
                                                size_t payload_bytes) {
  const auto place = landing->PostSeal(seal, payload_bytes);
  if (!place.ok()) {
    Fail(landing, place.status());
    return {};
  }
  if (place->empty() && payload_bytes > 0) ++context_->counters.stale_messages;
  if (place->empty()) VerifyIfComplete(landing);
  return *place;
}

void ReceivingSide::OnPayload(LinkId link, const Message& message,
                              absl::Span<const std::byte> header,
                              absl::Span<const std::byte> payload) {
  Landing* landing = table_.Find(link, message.key);
  if (landing == nullptr) {
    ++context_->counters.stale_messages;
    return;
  }
  landing->ReceiveEnded();
  if (landing->state() != LandingState::kReceiving) {
    CloseIfOver(landing);
    return;
  }
  context_->counters.payload_bytes_received += payload.size();
  BATON_FAILPOINT("landing.payload");
  absl::Status status = BATON_MUTANT("no_checksum") ? absl::OkStatus()
                                                    : CheckCrc(header, payload);
  if (!status.ok()) {
    ++context_->counters.crc_failures;
  } else if (const auto* frame = std::get_if<Frame>(&message.body)) {
    landing->FrameVerified(*frame, payload.size());
    TellProgress(landing);
  } else {
    status = landing->SealVerified();
  }
  if (!status.ok()) {
    Fail(landing, status);
    return;
  }
  VerifyIfComplete(landing);
}

void ReceivingSide::TellProgress(Landing* landing) {
  if (landing->Untold(context_->now) < context_->options.progress_interval) {
    return;
  }
  landing->Told(context_->now);
  context_->events.push_back(
      LandingProgress{landing->id(), landing->verified_blocks()});
}

void ReceivingSide::VerifyIfComplete(Landing* landing) {
  if (!landing->TryVerify()) return;
  context_->SendControl(landing->link(), Recipient::kHolder, landing->key(),
                        Ack{landing->verified_blocks()});
  BATON_FAILPOINT("landing.verified");
  context_->events.push_back(LandingVerified{
      landing->id(), landing->seal(), landing->bytes(),
      landing->verified_blocks(), context_->now - landing->begun()});
  Forget(landing);
}

void ReceivingSide::OnAbort(LinkId link, const TransferKey& key,
                            const AbortNotice& notice) {
  Landing* landing = table_.Find(link, key);
  if (landing == nullptr) {
    ++context_->counters.stale_messages;
    context_->SendControl(link, Recipient::kHolder, key, AbortAck{});
    return;
  }
  BATON_FAILPOINT("landing.abort_by_holder");
  landing->HolderFinished();
  landing->OweAbortAck();
  if (landing->state() == LandingState::kReceiving) {
    landing->GiveUp();
    table_.SetDeadline(landing->id(),
                       context_->now + context_->options.abort_grace);
    context_->events.push_back(LandingFailed{
        landing->id(),
        absl::Status(notice.code, ToAbsl(StrCat("aborted by the holder: ",
                                                notice.reason)))});
  }
  CloseIfOver(landing);
}

void ReceivingSide::OnAbortAck(LinkId link, const TransferKey& key) {
  Landing* landing = table_.Find(link, key);
  if (landing == nullptr || landing->state() != LandingState::kQuarantine) {
    ++context_->counters.stale_messages;
    return;
  }
  landing->HolderFinished();
  CloseIfOver(landing);
}

void ReceivingSide::Abort(Landing* landing, const absl::Status& why) {
  landing->GiveUp();
  table_.SetDeadline(landing->id(),
                     context_->now + context_->options.abort_grace);
  context_->SendControl(landing->link(), Recipient::kHolder, landing->key(),
                        NoticeOf(why));
  BATON_FAILPOINT("landing.abort");
}

void ReceivingSide::Fail(Landing* landing, const absl::Status& why) {
  Abort(landing, why);
  context_->events.push_back(LandingFailed{landing->id(), why});
  CloseIfOver(landing);
}

void ReceivingSide::CloseIfOver(Landing* landing) {
  const bool hasty = BATON_MUTANT("late_write_after_close");
  if (!landing->quiet() && !hasty) return;
  if (landing->TakeOwedAbortAck()) {
    context_->SendControl(landing->link(), Recipient::kHolder, landing->key(),
                          AbortAck{});
  }
  if (!landing->over() && !hasty) return;
  BATON_FAILPOINT("landing.closed");
  context_->events.push_back(LandingClosed{landing->id()});
  Forget(landing);
}

void ReceivingSide::Forget(Landing* landing) {
  context_->links.Unuse(landing->link());
  table_.Remove(landing->id());
}

void ReceivingSide::OnLinkClosed(LinkId link, const absl::Status& status) {
  for (const LandingId id : table_.OnLink(link)) {
    Landing* landing = table_.Find(id);
    if (landing->state() == LandingState::kReceiving) {
      context_->events.push_back(LandingFailed{
          id, absl::UnavailableError(
                  ToAbsl(StrCat("link lost: ", ToStd(status.message()))))});
    }
    context_->events.push_back(LandingClosed{id});
    Forget(landing);
  }
}

bool ReceivingSide::RunTimers() {
  bool any = false;
  while (Landing* landing = table_.PopDue(context_->now)) {
    any = true;
    ++context_->counters.deadlines;
    const absl::Status late =
        absl::DeadlineExceededError("the transfer did not end within its time");
    switch (landing->state()) {
      case LandingState::kReserved:
        context_->events.push_back(LandingFailed{landing->id(), late});
        context_->events.push_back(LandingClosed{landing->id()});
        table_.Remove(landing->id());
        break;
      case LandingState::kReceiving:
        Fail(landing, late);
        break;
      case LandingState::kVerified:
        BATON_CHECK(false);
        break;
      case LandingState::kQuarantine:
        BATON_FAILPOINT("landing.forced_close");
        context_->CloseByForce(landing->link());
        break;
    }
  }
  return any;
}

}  // namespace baton::transfer
