#include "kv_transfer/transfer_core.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoints.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "kv_transfer/core_context.h"
#include "kv_transfer/holding_side.h"
#include "kv_transfer/receiving_side.h"
#include "kv_transfer/ticket.h"

namespace baton::transfer {

struct TransferCore::Impl final : TransportHandler {
  Impl(Transport* transport, TransferOptions options)
      : context(transport, std::move(options)),
        receiving(&context),
        holding(&context) {}

  absl::Span<std::byte> OnHeader(LinkId link,
                                 absl::Span<const std::byte> header,
                                 size_t payload_bytes) override {
    if (!context.links.Admit(link)) return {};
    const absl::StatusOr<Message> message = DecodeHeader(header, payload_bytes);
    if (!message.ok()) {
      OnMalformed(link, header, message.status());
      return {};
    }
    if (message->recipient == Recipient::kReceiver) {
      return receiving.OnHeader(link, *message, payload_bytes);
    }
    holding.OnHeader(link, *message);
    return {};
  }

  void OnMessage(LinkId link, absl::Span<const std::byte> header,
                 absl::Span<const std::byte> payload) override {
    if (payload.empty()) return;
    const absl::StatusOr<Message> message =
        DecodeHeader(header, payload.size());
    if (message.ok()) receiving.OnPayload(link, *message, header, payload);
  }

  void OnSent(LinkId link, SendId send, const absl::Status& status) override {
    if (!status.ok()) context.links.Close(link);
    const TransferId owner = context.links.OnSent(send);
    if (owner != TransferId()) holding.OnSent(owner);
  }

  void OnClosed(LinkId link, const absl::Status& status) override {
    receiving.OnLinkClosed(link, status);
    holding.OnLinkClosed(link, status);
    context.links.OnClosed(link);
  }

  // A BEGIN of another version gets an answer; after anything else that makes
  // no sense the link cannot be trusted.
  void OnMalformed(LinkId link, absl::Span<const std::byte> header,
                   const absl::Status& status) {
    ++context.counters.stale_messages;
    if (absl::IsDataLoss(status)) ++context.counters.crc_failures;
    const auto key = DecodeKey(header);
    if (absl::IsUnimplemented(status) && IsBegin(header) && key.ok()) {
      receiving.RefuseVersion(link, *key, status);
      return;
    }
    context.CloseByForce(link);
  }

  CoreContext context;
  ReceivingSide receiving;
  HoldingSide holding;
  uint64_t next_transfer = 1;
};

TransferCore::TransferCore(Transport* transport, TransferOptions options) {
  BATON_CHECK(transport != nullptr);
  BATON_CHECK(options.fingerprint.size() == kFingerprintBytes);
  BATON_CHECK(options.layout.block_bytes() > 0);
  BATON_CHECK(options.random != nullptr);
  impl_ = std::make_unique<Impl>(transport, std::move(options));
}

TransferCore::~TransferCore() = default;

absl::StatusOr<Ticket> TransferCore::OpenLanding(LandingSpec spec,
                                                 MonotonicTime now) {
  const TransferOptions& options = impl_->context.options;
  BATON_RETURN_IF_ERROR(CheckLandingSpec(spec, options));
  if (open_landings() >= options.max_landings ||
      BATON_FAILPOINT_FAILS("landing.open")) {
    return absl::ResourceExhaustedError(
        StrCat("landings: all ", options.max_landings, " are open"));
  }
  const Transport& transport = *impl_->context.transport;
  Ticket ticket =
      IssueTicket(spec, options, transport.name(), transport.address());
  AdoptLanding(ticket, std::move(spec), now);
  return ticket;
}

void TransferCore::AdoptLanding(const Ticket& ticket, LandingSpec spec,
                                MonotonicTime now) {
  impl_->context.now = now;
  impl_->receiving.Adopt(ticket, std::move(spec));
}

void TransferCore::CancelLanding(LandingId landing, MonotonicTime now) {
  impl_->context.now = now;
  impl_->receiving.Cancel(landing);
}

absl::StatusOr<TransferId> TransferCore::OpenTransfer(const Ticket& ticket,
                                                      MonotonicTime deadline,
                                                      MonotonicTime now) {
  const TransferId id(impl_->next_transfer++);
  BATON_RETURN_IF_ERROR(StartTransfer(id, ticket, deadline, now));
  return id;
}

absl::Status TransferCore::StartTransfer(TransferId id, const Ticket& ticket,
                                         MonotonicTime deadline,
                                         MonotonicTime now) {
  impl_->context.now = now;
  return impl_->holding.Start(id, ticket, deadline);
}

absl::Status TransferCore::PushBlock(TransferId transfer, uint32_t ordinal,
                                     absl::Span<const std::byte> memory,
                                     uint32_t written_tokens) {
  return impl_->holding.Push(transfer, ordinal, memory, written_tokens);
}

absl::Status TransferCore::Seal(TransferId transfer, const SealContents& seal) {
  return impl_->holding.Seal(transfer, seal);
}

void TransferCore::Abort(TransferId transfer, MonotonicTime now) {
  impl_->context.now = now;
  impl_->holding.Abort(transfer);
}

bool TransferCore::Poll(MonotonicTime now, std::vector<TransferEvent>* events) {
  CoreContext& context = impl_->context;
  context.now = now;
  bool any = context.transport->Progress(impl_.get());
  any |= impl_->receiving.RunTimers();
  any |= impl_->holding.RunTimers();
  any |= impl_->holding.Pump();
  any |= !context.events.empty();
  std::ranges::move(context.events, std::back_inserter(*events));
  context.events.clear();
  return any;
}

MonotonicTime TransferCore::NextDeadline() const {
  if (!impl_->context.events.empty() || impl_->holding.CanPump()) {
    return MonotonicTime();
  }
  return std::min(impl_->receiving.NextDeadline(),
                  impl_->holding.NextDeadline());
}

const TransferCore::Counters& TransferCore::counters() const {
  return impl_->context.counters;
}

size_t TransferCore::open_landings() const { return impl_->receiving.open(); }

size_t TransferCore::open_transfers() const { return impl_->holding.open(); }

void TransferCore::OnUnknownLanding(std::function<void()> adopt) {
  impl_->context.adopt = std::move(adopt);
}

void TransferCore::CloseLinks() { impl_->context.links.CloseAll(); }

size_t TransferCore::open_links() const { return impl_->context.links.size(); }

}  // namespace baton::transfer
