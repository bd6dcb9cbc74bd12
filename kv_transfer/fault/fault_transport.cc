#include "kv_transfer/fault/fault_transport.h"

#include <algorithm>

#include "common/base/strings.h"

namespace baton::transfer {
namespace {

// Users count from 1: copies have names of their own.
constexpr uint64_t kOwnNames = uint64_t{1} << 63;

bool IsOwn(SendId send) { return send.value() >= kOwnNames; }

std::vector<std::byte> Copy(absl::Span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

// Hears the inner transport for the user.
class FaultTransport::Filter final : public TransportHandler {
 public:
  Filter(FaultTransport* owner, TransportHandler* user)
      : owner_(owner), user_(user) {}

  absl::Span<std::byte> OnHeader(LinkId link,
                                 absl::Span<const std::byte> header,
                                 size_t payload_bytes) override {
    return user_->OnHeader(link, header, payload_bytes);
  }
  void OnMessage(LinkId link, absl::Span<const std::byte> header,
                 absl::Span<const std::byte> payload) override {
    user_->OnMessage(link, header, payload);
  }
  void OnSent(LinkId link, SendId send, const absl::Status& status) override {
    owner_->own_bytes_.erase({link, send});
    if (IsOwn(send)) return;
    const auto late = owner_->late_.find({link, send});
    if (late == owner_->late_.end()) {
      user_->OnSent(link, send, status);
      return;
    }
    owner_->receipts_.push_back(
        {link, send, status, MonotonicNow() + late->second});
    owner_->late_.erase(late);
  }
  void OnClosed(LinkId link, const absl::Status& status) override {
    const absl::Status lost = absl::CancelledError("the link is over");
    for (const Held& held : std::exchange(owner_->held_[link], {})) {
      user_->OnSent(link, held.send, lost);
    }
    for (const SendId send : std::exchange(owner_->dropped_[link], {})) {
      user_->OnSent(link, send, lost);
    }
    for (const Receipt& receipt : owner_->TakeReceipts(
             [link](const Receipt& r) { return r.link == link; })) {
      user_->OnSent(link, receipt.send, receipt.status);
    }
    owner_->held_.erase(link);
    owner_->dropped_.erase(link);
    user_->OnClosed(link, status);
  }

 private:
  FaultTransport* owner_;
  TransportHandler* user_;
};

FaultTransport::FaultTransport(std::unique_ptr<Transport> inner,
                               std::vector<FaultSpec> faults)
    : inner_(std::move(inner)),
      faults_(std::move(faults)),
      next_own_(kOwnNames) {}

std::optional<FaultKind> FaultTransport::NextFault() {
  ++messages_;
  for (const FaultSpec& fault : faults_) {
    if (fault.Hits(messages_)) return fault.kind;
  }
  return std::nullopt;
}

absl::Status FaultTransport::Send(LinkId link, SendId send,
                                  absl::Span<const std::byte> header,
                                  absl::Span<const std::byte> payload) {
  const std::optional<FaultKind> fault = NextFault();
  absl::Status status = fault ? SendSpoilt(*fault, link, send, header, payload)
                              : inner_->Send(link, send, header, payload);
  faults_done_ += fault && (status.ok() || *fault == FaultKind::kRefuse);
  if (fault != FaultKind::kReorder) ReleaseHeld(link);
  return status;
}

absl::Status FaultTransport::SendCopy(LinkId link, SendId send,
                                      absl::Span<const std::byte> header,
                                      absl::Span<const std::byte> payload) {
  Bytes& bytes = own_bytes_[{link, send}];
  bytes = {Copy(header), Copy(payload)};
  absl::Status status = inner_->Send(link, send, bytes.header, bytes.payload);
  if (!status.ok()) own_bytes_.erase({link, send});
  return status;
}

absl::Status FaultTransport::SendSpoilt(FaultKind kind, LinkId link,
                                        SendId send,
                                        absl::Span<const std::byte> header,
                                        absl::Span<const std::byte> payload) {
  const MonotonicTime later = MonotonicNow() + kFaultDelay;
  switch (kind) {
    case FaultKind::kRefuse:
      return absl::UnavailableError("fault: the message was refused");
    case FaultKind::kFail:
      receipts_.push_back({link, send,
                           absl::UnavailableError("fault: it was not sent"),
                           MonotonicTime()});
      return absl::OkStatus();
    case FaultKind::kLate:
      late_[{link, send}] = kFaultDelay;
      return inner_->Send(link, send, header, payload);
    case FaultKind::kDuplicate: {
      absl::Status status = inner_->Send(link, send, header, payload);
      if (status.ok()) {
        SendCopy(link, SendId(next_own_++), header, payload).IgnoreError();
      }
      return status;
    }
    case FaultKind::kReorder:
      held_[link].push_back({send, header, payload, later});
      return absl::OkStatus();
    case FaultKind::kTruncate:
      return payload.empty()
                 ? SendCopy(link, send, header.first((header.size() + 1) / 2),
                            payload)
                 : SendCopy(link, send, header,
                            payload.first(payload.size() / 2));
    case FaultKind::kFlip: {
      std::vector<std::byte> head = Copy(header);
      std::vector<std::byte> body = Copy(payload);
      std::vector<std::byte>& target = body.empty() ? head : body;
      target[target.size() / 2] ^= std::byte{0x10};
      return SendCopy(link, send, head, body);
    }
    case FaultKind::kDrop:
      dropped_[link].push_back(send);
      return absl::OkStatus();
  }
  return absl::InternalError("fault: unknown");
}

void FaultTransport::HandOn(LinkId link, const Held& held) {
  const absl::Status status =
      inner_->Send(link, held.send, held.header, held.payload);
  // A link that is over says so with OnClosed; its sends come before.
  if (!status.ok()) dropped_[link].push_back(held.send);
}

void FaultTransport::ReleaseHeld(LinkId link) {
  const auto it = held_.find(link);
  if (it == held_.end()) return;
  for (const Held& held : std::exchange(it->second, {})) HandOn(link, held);
}

std::vector<FaultTransport::Receipt> FaultTransport::TakeReceipts(
    const std::function<bool(const Receipt&)>& which) {
  std::vector<Receipt> taken;
  std::erase_if(receipts_, [&](const Receipt& receipt) {
    if (!which(receipt)) return false;
    taken.push_back(receipt);
    return true;
  });
  return taken;
}

bool FaultTransport::RunDue(TransportHandler* handler) {
  const MonotonicTime now = MonotonicNow();
  for (auto& [link, held] : held_) {
    while (!held.empty() && held.front().due <= now) {
      HandOn(link, held.front());
      held.pop_front();
    }
  }
  const std::vector<Receipt> due =
      TakeReceipts([now](const Receipt& r) { return r.due <= now; });
  for (const Receipt& receipt : due) {
    handler->OnSent(receipt.link, receipt.send, receipt.status);
  }
  return !due.empty();
}

bool FaultTransport::Progress(TransportHandler* handler) {
  Filter filter(this, handler);
  bool any = RunDue(handler);
  any |= inner_->Progress(&filter);
  return any;
}

MonotonicTime FaultTransport::NextDue() const {
  MonotonicTime next = kNever;
  for (const auto& [link, held] : held_) {
    if (!held.empty()) next = std::min(next, held.front().due);
  }
  for (const Receipt& receipt : receipts_) next = std::min(next, receipt.due);
  return next;
}

void FaultTransport::Wait(Duration timeout) {
  const MonotonicTime next = NextDue();
  if (next != kNever) timeout = std::min(timeout, next - MonotonicNow());
  if (timeout > Duration::zero()) inner_->Wait(timeout);
}

}  // namespace baton::transfer
