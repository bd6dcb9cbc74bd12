#include "kv_transfer/holding_side.h"

#include <utility>
#include <vector>

#include "common/base/failpoints.h"
#include "common/base/mutants.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::transfer {
namespace {

absl::Status NoSuchTransfer(TransferId id) {
  return absl::NotFoundError(StrCat("transfer ", id.value(), ": is not open"));
}

}  // namespace

TransferSession* HoldingSide::Find(TransferId id) {
  auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : &it->second;
}

absl::Status HoldingSide::Start(TransferId id, const Ticket& ticket,
                                MonotonicTime deadline) {
  BATON_ASSIGN_OR_RETURN(
      TransferTerms terms,
      CheckTicket(ticket, context_->options, context_->transport->name()));
  if (BATON_FAILPOINT_FAILS("transfer.connect")) {
    return absl::UnavailableError("link: injected failure");
  }
  BATON_ASSIGN_OR_RETURN(const LinkId link,
                         context_->links.LinkTo(terms.address));
  terms.key.transfer = id;
  sessions_.try_emplace(id, terms, link, context_->options.layout.layers);
  deadlines_.Set(id, deadline);
  context_->links.Use(link);
  context_->SendControl(link, Recipient::kReceiver, terms.key, terms.begin);
  BATON_FAILPOINT("transfer.begin");
  return absl::OkStatus();
}

absl::Status HoldingSide::Push(TransferId id, uint32_t ordinal,
                               absl::Span<const std::byte> memory,
                               uint32_t written_tokens) {
  TransferSession* session = Find(id);
  if (session == nullptr) return NoSuchTransfer(id);
  BATON_RETURN_IF_ERROR(session->Push(ordinal, memory, written_tokens));
  Schedule(session);
  return absl::OkStatus();
}

absl::Status HoldingSide::Seal(TransferId id, const SealContents& contents) {
  TransferSession* session = Find(id);
  if (session == nullptr) return NoSuchTransfer(id);
  BATON_RETURN_IF_ERROR(session->Seal(contents));
  Schedule(session);
  return absl::OkStatus();
}

void HoldingSide::Abort(TransferId id) {
  TransferSession* session = Find(id);
  if (session == nullptr || session->state() == SessionState::kAborting ||
      session->state() == SessionState::kAcked) {
    return;
  }
  GiveUp(session, absl::CancelledError("the holder cancelled"), true);
  FinishIfOver(session);
}

void HoldingSide::Schedule(TransferSession* session) {
  if (session->scheduled || !session->HasNext()) return;
  session->scheduled = true;
  turns_[session->link()].push_back(session->id());
}

bool HoldingSide::CanPump() const {
  for (const auto& [link, turn] : turns_) {
    auto it = sessions_.find(turn.front());
    if (it == sessions_.end() || !it->second.HasNext() ||
        context_->links.HasRoom(link, it->second.NextBytes())) {
      return true;
    }
  }
  return false;
}

bool HoldingSide::Pump() {
  bool any = false;
  for (auto it = turns_.begin(); it != turns_.end();) {
    std::deque<TransferId>& turn = it->second;
    while (!turn.empty()) {
      TransferSession* session = Find(turn.front());
      if (session != nullptr && session->HasNext()) {
        if (!context_->links.HasRoom(it->first, session->NextBytes())) break;
        SendNext(session);
        any = true;
      }
      turn.pop_front();
      if (session == nullptr) continue;
      session->scheduled = session->HasNext();
      if (session->scheduled) turn.push_back(session->id());
    }
    it = turn.empty() ? turns_.erase(it) : std::next(it);
  }
  return any;
}

void HoldingSide::SendNext(TransferSession* session) {
  TransferSession::Outgoing next = session->TakeNext();
  const bool frame = std::holds_alternative<Frame>(next.body);
  const Message message{session->key(), Recipient::kReceiver,
                        std::move(next.body)};
  BATON_FAILPOINT("transfer.frame_or_seal");
  if (!frame) {
    context_->links.SendSeal(session->link(), message,
                             std::move(next.contents));
    return;
  }
  if (context_->links.SendFrame(session->link(), message, next.memory,
                                session->id())) {
    session->SendStarted();
    ++context_->counters.frames_sent;
    context_->counters.payload_bytes_sent += next.memory.size();
  }
}

void HoldingSide::OnHeader(LinkId link, const Message& message) {
  TransferSession* session = Find(message.key.transfer);
  if (session == nullptr || session->link() != link ||
      session->key().landing != message.key.landing ||
      !ConstantTimeEqual(session->key().nonce, message.key.nonce)) {
    ++context_->counters.stale_messages;
    if (std::holds_alternative<AbortNotice>(message.body)) {
      context_->SendControl(link, Recipient::kReceiver, message.key,
                            AbortAck{});
    }
    return;
  }
  const bool open = session->state() != SessionState::kAborting &&
                    session->state() != SessionState::kAcked;
  if (const auto* ack = std::get_if<Ack>(&message.body)) {
    if (open && session->Acknowledge(*ack)) {
      deadlines_.Set(session->id(),
                     context_->now + context_->options.abort_grace);
    } else {
      ++context_->counters.stale_messages;
      if (session->state() == SessionState::kAborting) {
        session->ReceiverAnswered();
      }
    }
  } else if (const auto* refusal = std::get_if<Refusal>(&message.body)) {
    session->ReceiverAnswered();
    if (open) {
      Fail(session, absl::Status(refusal->code, ToAbsl(refusal->reason)),
           false);
    }
  } else if (const auto* abort = std::get_if<AbortNotice>(&message.body)) {
    context_->SendControl(link, Recipient::kReceiver, message.key, AbortAck{});
    session->ReceiverAnswered();
    if (open) {
      Fail(session,
           absl::Status(abort->code, ToAbsl(StrCat("aborted by the receiver: ",
                                                   abort->reason))),
           false);
    }
  } else if (session->state() == SessionState::kAborting) {
    session->ReceiverAnswered();
  } else {
    ++context_->counters.stale_messages;
  }
  FinishIfOver(session);
}

void HoldingSide::OnSent(TransferId id) {
  TransferSession* session = Find(id);
  if (session == nullptr) return;
  session->SendEnded();
  FinishIfOver(session);
}

void HoldingSide::GiveUp(TransferSession* session, const absl::Status& why,
                         bool tell) {
  session->GiveUp(!tell);
  deadlines_.Set(session->id(), context_->now + context_->options.abort_grace);
  if (!tell) return;
  context_->SendControl(session->link(), Recipient::kReceiver, session->key(),
                        NoticeOf(why));
  BATON_FAILPOINT("transfer.abort_by_holder");
}

void HoldingSide::Fail(TransferSession* session, const absl::Status& why,
                       bool tell) {
  GiveUp(session, why, tell);
  context_->events.push_back(TransferFailed{session->id(), why});
}

void HoldingSide::FinishIfOver(TransferSession* session) {
  if (session->state() == SessionState::kAcked && session->quiet()) {
    context_->events.push_back(TransferAcked{
        session->id(), session->pushed_bytes(), session->pushed_blocks()});
    BATON_FAILPOINT("transfer.acked");
    if (BATON_MUTANT("double_acknowledge")) {
      context_->events.push_back(context_->events.back());
    }
    Forget(session);
  } else if (session->state() == SessionState::kAborting && session->over()) {
    context_->events.push_back(TransferClosed{session->id()});
    BATON_FAILPOINT("transfer.closed");
    Forget(session);
  }
}

void HoldingSide::Forget(TransferSession* session) {
  const TransferId id = session->id();
  context_->links.Unuse(session->link());
  deadlines_.Clear(id);
  sessions_.erase(id);
}

void HoldingSide::OnLinkClosed(LinkId link, const absl::Status& status) {
  turns_.erase(link);
  BATON_FAILPOINT("transfer.link_lost");
  std::vector<TransferId> lost;
  for (const auto& [id, session] : sessions_) {
    if (session.link() == link) lost.push_back(id);
  }
  for (const TransferId id : lost) {
    TransferSession* session = Find(id);
    if (session->state() == SessionState::kAcked) {
      context_->events.push_back(
          TransferAcked{id, session->pushed_bytes(), session->pushed_blocks()});
    } else {
      if (session->state() != SessionState::kAborting) {
        context_->events.push_back(TransferFailed{
            id, absl::UnavailableError(
                    ToAbsl(StrCat("link lost: ", ToStd(status.message()))))});
      }
      context_->events.push_back(TransferClosed{id});
    }
    Forget(session);
  }
}

bool HoldingSide::RunTimers() {
  bool any = false;
  while (const auto due = deadlines_.PopDue(context_->now)) {
    TransferSession* session = Find(*due);
    if (session == nullptr) continue;
    any = true;
    ++context_->counters.deadlines;
    if (session->state() == SessionState::kAborting ||
        session->state() == SessionState::kAcked) {
      context_->CloseByForce(session->link());
    } else {
      Fail(session,
           absl::DeadlineExceededError(
               "the transfer did not end within its time"),
           true);
      FinishIfOver(session);
    }
  }
  return any;
}

}  // namespace baton::transfer
