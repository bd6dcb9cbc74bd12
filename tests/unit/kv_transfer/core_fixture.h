#ifndef BATON_TESTS_UNIT_KV_TRANSFER_CORE_FIXTURE_H_
#define BATON_TESTS_UNIT_KV_TRANSFER_CORE_FIXTURE_H_

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kv_transfer/transfer_core.h"
#include "kv_transfer/wire.h"
#include "tests/unit/kv_transfer/fake_network.h"

namespace baton::transfer {

inline constexpr kernels::KvLayout kTinyLayout{
    .layers = 2, .kv_heads = 1, .head_dim = 2, .type = kernels::KvType::kF16};

inline TransferOptions TinyOptions(uint64_t epoch) {
  TransferOptions options;
  options.epoch = WorkerEpoch(epoch);
  options.fingerprint = std::string(32, 'f');
  options.layout = kTinyLayout;
  options.random =
      [random = std::mt19937_64(epoch)](absl::Span<std::byte> bytes) mutable {
        for (std::byte& b : bytes) b = static_cast<std::byte>(random());
      };
  return options;
}

// Blocks of KV of one worker, each filled with bytes of its own.
class TinyMemory {
 public:
  TinyMemory(uint32_t blocks, uint32_t seed)
      : blocks_(blocks, std::vector<std::byte>(kTinyLayout.block_bytes())) {
    std::minstd_rand random(seed + 1);
    for (auto& block : blocks_) {
      for (std::byte& b : block) b = static_cast<std::byte>(random() >> 8);
    }
  }
  const std::vector<std::byte>& block(uint32_t i) const { return blocks_[i]; }
  std::vector<std::byte*> pointers() {
    std::vector<std::byte*> all;
    for (auto& block : blocks_) all.push_back(block.data());
    return all;
  }
  friend bool operator==(const TinyMemory&, const TinyMemory&) = default;

 private:
  std::vector<std::vector<std::byte>> blocks_;
};

inline LandingSpec SpecFor(TinyMemory* memory, uint32_t tokens, uint64_t epoch,
                           Duration timeout = std::chrono::seconds(10)) {
  LandingSpec spec;
  spec.token_count = tokens;
  spec.memory = memory->pointers();
  for (uint32_t i = 0; i < spec.memory.size(); ++i) {
    spec.blocks.push_back({WorkerEpoch(epoch), BlockId(i), Generation(1)});
  }
  spec.timeout = timeout;
  return spec;
}

// A core on the fake network and everything it has said.
struct Party {
  Party(FakeNetwork* network, const std::string& address,
        TransferOptions options)
      : transport(network->Add(address)), core(transport, std::move(options)) {}
  Party(FakeNetwork* network, const std::string& address, uint64_t epoch)
      : Party(network, address, TinyOptions(epoch)) {}

  template <class Event>
  std::vector<Event> All() const {
    std::vector<Event> found;
    for (const TransferEvent& event : events) {
      if (const auto* match = std::get_if<Event>(&event)) {
        found.push_back(*match);
      }
    }
    return found;
  }

  FakeTransport* transport;
  TransferCore core;
  std::vector<TransferEvent> events;
};

// A holder and a receiver with one landing of `kTokens` tokens in `kBlocks`
// blocks between them.
class CoreFixture {
 public:
  static constexpr uint32_t kTokens = 40;
  static constexpr uint32_t kBlocks = 3;

  CoreFixture()
      : holder(&net, "holder", 1),
        receiver(&net, "receiver", 2),
        source(kBlocks, 1),
        target(kBlocks, 2) {}

  void Poll() {
    holder.core.Poll(now, &holder.events);
    receiver.core.Poll(now, &receiver.events);
  }
  // Delivers what is on the wire, and what that leads to.
  void Flow() {
    for (Poll(); !net.wire.empty(); Poll()) net.Deliver(0);
    Poll();
  }
  // Lets time pass until both cores are idle, or a minute is over.
  void Settle() {
    const MonotonicTime end = now + std::chrono::minutes(1);
    while (now < end) {
      Flow();
      const MonotonicTime next =
          std::min(holder.core.NextDeadline(), receiver.core.NextDeadline());
      if (next == kNever) return;
      now = std::max(now, next);
    }
  }

  Ticket Open() {
    ticket = *receiver.core.OpenLanding(SpecFor(&target, kTokens, 2), now);
    return ticket;
  }
  TransferId Start() {
    transfer =
        *holder.core.OpenTransfer(ticket, now + std::chrono::seconds(10), now);
    return transfer;
  }
  absl::Status Push(uint32_t ordinal) {
    return holder.core.PushBlock(transfer, ordinal, source.block(ordinal),
                                 ordinal + 1 < kBlocks ? 16 : 8);
  }
  static SealContents SealOf(uint32_t token) {
    SealContents seal;
    seal.add_first_tokens()->set_token_id(token);
    return seal;
  }
  void PushAllAndSeal() {
    for (uint32_t i = 0; i < kBlocks; ++i) Push(i).IgnoreError();
    holder.core.Seal(transfer, SealOf(4711)).IgnoreError();
  }
  LandingId landing() const { return LandingId(ticket.landing_id()); }
  TransferKey key() const {
    TransferKey k;
    k.landing = landing();
    std::memcpy(k.nonce.data(), ticket.nonce().data(), kNonceBytes);
    k.transfer = transfer;
    return k;
  }
  // Indices on the wire of messages of one type (see Packet::type).
  std::vector<size_t> OfType(int type) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < net.wire.size(); ++i) {
      if (net.wire[i].type() == type) found.push_back(i);
    }
    return found;
  }
  bool AllOver() const {
    return holder.core.open_transfers() == 0 &&
           receiver.core.open_landings() == 0;
  }

  FakeNetwork net;
  MonotonicTime now{std::chrono::hours(1)};
  Party holder;
  Party receiver;
  TinyMemory source;
  TinyMemory target;
  Ticket ticket;
  TransferId transfer;
};

}  // namespace baton::transfer

#endif  // BATON_TESTS_UNIT_KV_TRANSFER_CORE_FIXTURE_H_
