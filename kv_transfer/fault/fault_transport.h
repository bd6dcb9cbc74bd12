#ifndef BATON_KV_TRANSFER_FAULT_FAULT_TRANSPORT_H_
#define BATON_KV_TRANSFER_FAULT_FAULT_TRANSPORT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kv_transfer/fault/fault_spec.h"
#include "kv_transfer/transport.h"

namespace baton::transfer {

// How long a message or its completion is held back.
inline constexpr Duration kFaultDelay = std::chrono::milliseconds(30);

// Another transport that spoils some of what is sent through it. It keeps the
// contract of Transport towards its user, and the user's memory; what the peer
// receives is another matter. For tests: no product binary links it.
class FaultTransport final : public Transport {
 public:
  FaultTransport(std::unique_ptr<Transport> inner,
                 std::vector<FaultSpec> faults);

  std::string_view name() const override { return inner_->name(); }
  std::string address() const override { return inner_->address(); }
  absl::StatusOr<LinkId> Connect(std::string_view address) override {
    return inner_->Connect(address);
  }
  absl::Status Send(LinkId link, SendId send,
                    absl::Span<const std::byte> header,
                    absl::Span<const std::byte> payload) override;
  void Close(LinkId link) override { inner_->Close(link); }
  bool Progress(TransportHandler* handler) override;
  void Wait(Duration timeout) override;
  void Wake() override { inner_->Wake(); }

  // Messages asked for, and those that a fault befell.
  uint64_t messages() const { return messages_; }
  uint64_t faults_done() const { return faults_done_; }

 private:
  using Name = std::pair<LinkId, SendId>;
  // Bytes that are not the user's, until the inner transport gives them back.
  struct Bytes {
    std::vector<std::byte> header;
    std::vector<std::byte> payload;
  };
  // A message that was not handed on yet.
  struct Held {
    SendId send;
    absl::Span<const std::byte> header;
    absl::Span<const std::byte> payload;
    MonotonicTime due;
  };
  // An OnSent that was not told yet.
  struct Receipt {
    LinkId link;
    SendId send;
    absl::Status status;
    MonotonicTime due;
  };
  class Filter;

  std::optional<FaultKind> NextFault();
  absl::Status SendCopy(LinkId link, SendId send,
                        absl::Span<const std::byte> header,
                        absl::Span<const std::byte> payload);
  absl::Status SendSpoilt(FaultKind kind, LinkId link, SendId send,
                          absl::Span<const std::byte> header,
                          absl::Span<const std::byte> payload);
  void HandOn(LinkId link, const Held& held);
  void ReleaseHeld(LinkId link);
  // Removes and returns them, in the order in which they came.
  std::vector<Receipt> TakeReceipts(
      const std::function<bool(const Receipt&)>& which);
  bool RunDue(TransportHandler* handler);
  MonotonicTime NextDue() const;

  std::unique_ptr<Transport> inner_;
  std::vector<FaultSpec> faults_;
  uint64_t messages_ = 0;
  uint64_t faults_done_ = 0;
  uint64_t next_own_;  // SendId of copies
  std::map<Name, Bytes> own_bytes_;
  std::map<Name, Duration> late_;
  std::map<LinkId, std::deque<Held>> held_;
  std::map<LinkId, std::vector<SendId>> dropped_;
  std::vector<Receipt> receipts_;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_FAULT_FAULT_TRANSPORT_H_
