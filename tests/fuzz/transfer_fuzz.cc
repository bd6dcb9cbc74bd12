// A TransferCore against a peer that says anything in any order. Receiving:
// nothing is written outside the landing, nor into it after its end, and it is
// VERIFIED only with blocks and a seal that came with a right checksum under
// its ticket. Holding: a transfer is acknowledged only by its receiver.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/base/check.h"
#include "kv_transfer/transfer_core.h"
#include "kv_transfer/wire.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/transfer_peer.h"
#include "tests/unit/kv_transfer/core_fixture.h"

namespace baton::transfer {
namespace {

using fuzz::FuzzInput;

constexpr uint32_t kBlocks = 3;
constexpr uint32_t kTokens = 40;
constexpr int kMaxSteps = 300;

// What both kinds of run share: the wire and the clock.
class Run {
 public:
  explicit Run(FuzzInput input)
      : input_(input), core_(&net_, "core", 2), peer_(&net_, &input_) {}

 protected:
  // Moves one message, or time, or nothing.
  void MoveWire() {
    const uint32_t kind = input_.Below(8);
    if (kind == 0) {
      now_ += std::chrono::milliseconds(input_.Number<uint16_t>());
    } else if (kind == 1 && !finish_.empty()) {
      finish_.front()();
      finish_.erase(finish_.begin());
    } else if (!net_.wire.empty()) {
      const size_t index = input_.Below(
          static_cast<uint32_t>(std::min<size_t>(net_.wire.size(), 256)));
      if (net_.wire[index].to != core_.transport) {
        HearCore(net_.wire[index]);
        net_.Drop(index);
      } else if (kind == 2) {
        net_.Duplicate(index);
      } else if (kind == 3) {
        finish_.push_back(net_.DeliverHeader(index));
      } else {
        net_.Deliver(index);
      }
    }
    Poll();
  }
  // True if anything happened.
  bool Poll() {
    const bool any = core_.core.Poll(now_, &core_.events);
    for (TransferEvent& event : std::exchange(core_.events, {})) {
      std::visit([this](auto& e) { On(e); }, event);
    }
    Check();
    return any;
  }
  // Until the core has nothing left to wait for.
  void Settle() {
    for (int i = 0; i < 1000; ++i) {
      for (const auto& finish : std::exchange(finish_, {})) finish();
      while (!net_.wire.empty()) {
        if (net_.wire[0].to != core_.transport) {
          net_.Drop(0);
        } else {
          net_.Deliver(0);
        }
      }
      if (Poll() || !net_.wire.empty()) continue;
      if (core_.core.NextDeadline() == kNever) return;
      now_ = std::max(now_, core_.core.NextDeadline());
    }
  }
  static TransferKey RightKey(const Ticket& ticket, TransferId transfer) {
    TransferKey key;
    key.landing = LandingId(ticket.landing_id());
    std::memcpy(key.nonce.data(), ticket.nonce().data(), kNonceBytes);
    key.transfer = transfer;
    return key;
  }
  TransferKey AnyKey(const Ticket& ticket, TransferId transfer) {
    TransferKey key = RightKey(ticket, transfer);
    if (input_.Byte() > 248) key.nonce[0] ^= std::byte{1};
    if (input_.Byte() > 252) key.landing = LandingId(1);
    return key;
  }

  virtual ~Run() = default;
  virtual void HearCore(const Packet&) {}
  virtual void Check() = 0;
  virtual void On(const LandingVerified&) { BATON_CHECK(false); }
  virtual void On(const LandingProgress&) { BATON_CHECK(false); }
  virtual void On(const LandingFailed&) { BATON_CHECK(false); }
  virtual void On(const LandingClosed&) { BATON_CHECK(false); }
  virtual void On(const TransferAcked&) { BATON_CHECK(false); }
  virtual void On(const TransferFailed&) { BATON_CHECK(false); }
  virtual void On(const TransferClosed&) { BATON_CHECK(false); }

  FuzzInput input_;
  FakeNetwork net_;
  MonotonicTime now_{std::chrono::hours(1)};
  Party core_;
  Peer peer_;
  std::vector<std::function<void()>> finish_;  // payloads under way
};

class Receiving final : public Run {
 public:
  using Run::Run;

  void Go() {
    Open();
    for (int i = 0; i < kMaxSteps && !input_.empty(); ++i) Step();
    Settle();
    for (const auto& [id, landing] : landings_) BATON_CHECK(landing.over);
    BATON_CHECK(core_.core.open_landings() == 0);
  }

 private:
  struct Landing {
    Ticket ticket;
    std::unique_ptr<TinyMemory> memory;
    std::optional<TinyMemory> last;  // what must not change any more
    Bytes held;                      // block 0, where it is held already
    // Sent under the right key with a right checksum; blocks by ordinal.
    bool begun = false;
    std::map<uint32_t, std::set<Bytes>> sent;
    std::set<std::string> seals;
    bool failed = false;
    bool cancelled = false;
    bool over = false;
  };

  void Open() {
    if (landings_.size() >= 4) return;
    Landing landing;
    landing.memory =
        std::make_unique<TinyMemory>(kBlocks, 2 + landings_.size());
    LandingSpec spec = SpecFor(landing.memory.get(), kTokens, 2);
    if (input_.Bool()) spec.held_tokens = 16;
    if (spec.held_tokens > 0) landing.held = landing.memory->block(0);
    auto ticket = core_.core.OpenLanding(std::move(spec), now_);
    BATON_CHECK(ticket.ok());
    landing.ticket = *ticket;
    const LandingId id(ticket->landing_id());
    landings_.emplace(id, std::move(landing));
    order_.push_back(id);
  }

  void Step() {
    const uint32_t kind = input_.Below(16);
    if (kind < 6) return MoveWire();
    if (kind == 6) return Open();
    if (kind == 7) {
      const LandingId id =
          order_[input_.Below(static_cast<uint32_t>(order_.size()))];
      if (input_.Byte() < 200) return;
      if (!landings_.at(id).over) landings_.at(id).cancelled = true;
      core_.core.CancelLanding(id, now_);
      Poll();
      return;
    }
    if (kind == 8 && input_.Byte() > 200) {
      peer_.Close();
      Poll();
      return;
    }
    const auto link = peer_.AnyLink();
    if (!link) return;
    if (kind == 9) return peer_.SendRaw(*link);
    Speak(*link, kind);
  }

  void Speak(LinkId link, uint32_t kind) {
    const LandingId id =
        order_[input_.Below(static_cast<uint32_t>(order_.size()))];
    Landing& landing = landings_.at(id);
    const Ticket& ticket = landing.ticket;
    Message message;
    const TransferId transfer(1 + (input_.Byte() > 240 ? 1 : 0));
    message.key = AnyKey(ticket, transfer);
    Bytes payload;
    const uint8_t spoil = input_.Byte();
    const bool right =
        !Peer::Spoils(spoil) && message.key == RightKey(ticket, transfer);
    if (kind == 10) {
      Begin begin;
      begin.epoch = WorkerEpoch(ticket.worker_epoch());
      std::memcpy(begin.fingerprint.data(), ticket.fingerprint().data(),
                  kFingerprintBytes);
      begin.token_count = ticket.token_count();
      begin.held_tokens = ticket.held_tokens();
      begin.block_count = ticket.block_count();
      begin.block_bytes = kTinyLayout.block_bytes();
      const Begin honest = begin;
      if (input_.Byte() > 240) begin.epoch = WorkerEpoch(1);
      if (input_.Byte() > 240) begin.fingerprint[0] ^= std::byte{1};
      if (input_.Byte() > 250) begin.block_count = 1;
      if (input_.Byte() > 250) ++begin.token_count;
      message.body = begin;
      if (right && begin == honest) landing.begun = true;
    } else if (kind < 14) {
      const uint32_t ordinal = input_.Below(kBlocks + 1);
      payload.assign(kTinyLayout.block_bytes(),
                     static_cast<std::byte>(input_.Byte()));
      const uint8_t shape = input_.Byte();
      if (shape > 248) payload.resize((shape - 248) * 5);
      Frame frame{input_.Below(8), ordinal, 0, 2,
                  ordinal + 1 < kBlocks ? 16u : 8u};
      if (input_.Byte() > 250) frame.layer_end = 1;
      if (input_.Byte() > 250) frame.written_tokens = 7;
      message.body = frame;
      if (right) landing.sent[ordinal].insert(payload);
    } else if (kind == 14) {
      std::string seal = CoreFixture::SealOf(input_.Byte()).SerializeAsString();
      const uint8_t garbage = input_.Byte();
      if (garbage > 240) seal.assign(garbage - 241, '\xff');
      payload.assign(AsBytes(seal).begin(), AsBytes(seal).end());
      const uint32_t held = ticket.held_tokens() / 16;
      message.body = SealMark{input_.Byte() > 250 ? 1 : kBlocks - held};
      if (right) landing.seals.insert(std::move(seal));
    } else if (input_.Bool()) {
      message.body = AbortNotice{absl::StatusCode::kAborted, "enough"};
    } else {
      message.body = AbortAck{};
    }
    peer_.Send(link, message, std::move(payload), spoil);
  }

  // Nothing writes where it must not.
  void Check() override {
    for (const auto& [id, landing] : landings_) {
      BATON_CHECK(!landing.last || *landing.memory == *landing.last);
      BATON_CHECK(landing.held.empty() ||
                  landing.memory->block(0) == landing.held);
    }
  }

  Landing& Live(LandingId id) {
    Landing& landing = landings_.at(id);
    BATON_CHECK(!landing.over);
    return landing;
  }
  void On(const LandingVerified& event) override {
    Landing& landing = Live(event.landing);
    BATON_CHECK(landing.begun && !landing.failed && !landing.cancelled);
    const uint32_t held = landing.ticket.held_tokens() / 16;
    BATON_CHECK(event.blocks == kBlocks - held);
    BATON_CHECK(event.bytes == event.blocks * kTinyLayout.block_bytes());
    for (uint32_t i = held; i < kBlocks; ++i) {
      BATON_CHECK(landing.sent[i].contains(landing.memory->block(i)));
    }
    bool sealed = false;
    for (const std::string& seal : landing.seals) {
      SealContents contents;
      sealed = sealed ||
               (contents.ParseFromString(seal) &&
                contents.SerializeAsString() == event.seal.SerializeAsString());
    }
    BATON_CHECK(sealed);
    End(&landing);
  }
  void On(const LandingProgress& event) override {
    const Landing& landing = Live(event.landing);
    BATON_CHECK(landing.begun && !landing.failed && !landing.cancelled);
    BATON_CHECK(event.blocks > 0 && event.blocks <= kBlocks);
  }
  void On(const LandingFailed& event) override {
    Landing& landing = Live(event.landing);
    BATON_CHECK(!landing.failed && !event.status.ok());
    landing.failed = true;
  }
  void On(const LandingClosed& event) override {
    Landing& landing = Live(event.landing);
    BATON_CHECK(landing.failed || landing.cancelled);
    End(&landing);
  }
  static void End(Landing* landing) {
    landing->over = true;
    landing->last = *landing->memory;
  }

  std::map<LandingId, Landing> landings_;
  std::vector<LandingId> order_;
};

class Holding final : public Run {
 public:
  explicit Holding(FuzzInput input) : Run(input), source_(kBlocks, 1) {}

  void Go() {
    Open();
    for (int i = 0; i < kMaxSteps && !input_.empty(); ++i) Step();
    Settle();
    for (const auto& [id, transfer] : transfers_) BATON_CHECK(transfer.over);
    BATON_CHECK(core_.core.open_transfers() == 0);
  }

 private:
  struct Transfer {
    Ticket ticket;
    uint32_t pushed = 0;
    bool sealed = false;
    bool seal_heard = false;    // by the peer
    bool acknowledged = false;  // as it should be, by the peer
    bool failed = false;
    bool aborted = false;
    bool over = false;
  };

  void Open() {
    if (transfers_.size() >= 4) return;
    Ticket ticket;
    ticket.set_landing_id(100 + transfers_.size());
    ticket.set_nonce(std::string(kNonceBytes, 'n'));
    ticket.set_worker_epoch(1);
    ticket.set_transport("fake");
    ticket.set_address("peer");
    ticket.set_fingerprint(std::string(kFingerprintBytes, 'f'));
    ticket.set_token_count(kTokens);
    ticket.set_block_count(kBlocks);
    ticket.set_timeout_ms(10000);
    const auto id =
        core_.core.OpenTransfer(ticket, now_ + std::chrono::seconds(5), now_);
    BATON_CHECK(id.ok());
    transfers_[*id].ticket = ticket;
    order_.push_back(*id);
    Poll();
  }

  void Step() {
    const uint32_t kind = input_.Below(16);
    if (kind < 6) return MoveWire();
    const TransferId id =
        order_[input_.Below(static_cast<uint32_t>(order_.size()))];
    Transfer& transfer = transfers_.at(id);
    if (kind == 6) return Open();
    if (kind == 7 && input_.Byte() > 200) {
      if (!transfer.over) transfer.aborted = true;
      core_.core.Abort(id, now_);
      Poll();
      return;
    }
    if (kind < 11) return Advance(id, &transfer);
    const auto link = peer_.AnyLink();
    if (!link) return;
    if (kind == 11 && input_.Byte() > 200) {
      peer_.Close();
      Poll();
      return;
    }
    if (kind == 12) return peer_.SendRaw(*link);
    Speak(*link, id, &transfer);
  }

  void Advance(TransferId id, Transfer* transfer) {
    if (transfer->pushed < kBlocks) {
      const uint32_t i = transfer->pushed;
      if (core_.core
              .PushBlock(id, i, source_.block(i), i + 1 < kBlocks ? 16 : 8)
              .ok()) {
        ++transfer->pushed;
      }
    } else if (!transfer->sealed) {
      transfer->sealed = core_.core.Seal(id, CoreFixture::SealOf(5)).ok();
    }
    Poll();
  }

  void Speak(LinkId link, TransferId id, Transfer* transfer) {
    Message message;
    message.key = AnyKey(transfer->ticket, id);
    message.recipient = Recipient::kHolder;
    switch (input_.Below(6)) {
      case 0:
        message.body = AbortNotice{absl::StatusCode::kAborted, "enough"};
        break;
      case 1:
        message.body = AbortAck{};
        break;
      case 2:
        message.body = Refusal{absl::StatusCode::kNotFound, "no"};
        break;
      default:
        message.body = Ack{input_.Byte() > 248 ? 1 : kBlocks};
    }
    const uint8_t spoil = input_.Byte();
    if (!Peer::Spoils(spoil) && message.key == RightKey(transfer->ticket, id) &&
        std::holds_alternative<Ack>(message.body)) {
      transfer->acknowledged = true;
    }
    peer_.Send(link, message, {}, spoil);
  }

  void HearCore(const Packet& packet) override {
    peer_.UseLink(packet.to_link);
    const auto message = DecodeHeader(packet.header, packet.payload.size());
    BATON_CHECK(message.ok());
    BATON_CHECK(CheckCrc(packet.header, packet.payload).ok());
  }
  void Check() override { BATON_CHECK(source_ == TinyMemory(kBlocks, 1)); }

  Transfer& Live(TransferId id) {
    Transfer& transfer = transfers_.at(id);
    BATON_CHECK(!transfer.over);
    return transfer;
  }
  void On(const TransferAcked& event) override {
    Transfer& transfer = Live(event.transfer);
    BATON_CHECK(transfer.sealed && transfer.acknowledged);
    BATON_CHECK(!transfer.failed);
    BATON_CHECK(event.blocks == kBlocks);
    transfer.over = true;
  }
  void On(const TransferFailed& event) override {
    Transfer& transfer = Live(event.transfer);
    BATON_CHECK(!transfer.failed && !event.status.ok());
    transfer.failed = true;
  }
  void On(const TransferClosed& event) override {
    Transfer& transfer = Live(event.transfer);
    BATON_CHECK(transfer.failed || transfer.aborted);
    transfer.over = true;
  }

  TinyMemory source_;
  std::map<TransferId, Transfer> transfers_;
  std::vector<TransferId> order_;
};

}  // namespace
}  // namespace baton::transfer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 8 << 10) return 0;
  baton::fuzz::FuzzInput input(data, size);
  if (input.Bool()) {
    baton::transfer::Holding(input).Go();
  } else {
    baton::transfer::Receiving(input).Go();
  }
  return 0;
}
