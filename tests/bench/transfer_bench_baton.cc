#include "tests/bench/transfer_bench_baton.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/random_bytes.h"
#include "common/kv_cache/kv_memory.h"
#include "kv_transfer/grpc/grpc_transport.h"
#include "kv_transfer/transfer_thread.h"
#include "kv_transfer/ucx/ucx_transport.h"

namespace baton::transfer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WorkerEpoch kEpoch(1);

TransferOptions OptionsFor(const kernels::KvLayout& layout) {
  TransferOptions options;
  options.epoch = kEpoch;
  options.fingerprint = std::string(32, 'b');
  options.layout = layout;
  options.random = FillRandom;
  return options;
}

// K and V of one head of one layer: 64 bytes per unit of head_dim.
kernels::KvLayout LayoutOf(size_t block_bytes) {
  return {.layers = 1,
          .kv_heads = 1,
          .head_dim = static_cast<int>(block_bytes / 64),
          .type = kernels::KvType::kF16};
}

template <class Result>
Result Must(absl::StatusOr<Result> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(1);
}

LandingSpec SpecFor(KvMemory* memory) {
  LandingSpec spec;
  for (uint32_t i = 0; i < memory->blocks(); ++i) {
    spec.blocks.push_back({kEpoch, BlockId(i), Generation(1)});
    spec.memory.push_back(memory->Block(BlockId(i)));
  }
  spec.token_count = 16 * memory->blocks();
  spec.timeout = seconds(60);
  return spec;
}

std::unique_ptr<KvMemory> Memory(const kernels::KvLayout& layout,
                                 uint32_t blocks) {
  auto memory = *KvMemory::Create(layout, blocks);
  std::ranges::fill(memory->all(), std::byte{1});
  return memory;
}

template <class Event>
std::optional<Event> Find(const std::vector<TransferEvent>& events) {
  for (const TransferEvent& event : events) {
    if (const auto* found = std::get_if<Event>(&event)) return *found;
    if (const auto* failed = std::get_if<LandingFailed>(&event)) {
      std::fprintf(stderr, "%s\n", failed->status.ToString().c_str());
      std::exit(1);
    }
    if (const auto* failed = std::get_if<TransferFailed>(&event)) {
      std::fprintf(stderr, "%s\n", failed->status.ToString().c_str());
      std::exit(1);
    }
  }
  return std::nullopt;
}

template <class Event>
Event PollFor(TransferCore* core) {
  std::vector<TransferEvent> events;
  while (true) {
    core->Poll(MonotonicNow(), &events);
    if (const auto found = Find<Event>(events)) return *found;
  }
}

double ReceiveAt(TransferCore* core, const BenchPeer& peer, KvMemory* memory,
                 int transfers) {
  double bytes = 0;
  double time = 0;
  for (int i = 0; i < transfers; ++i) {
    const Ticket ticket = *core->OpenLanding(SpecFor(memory), MonotonicNow());
    peer.Send(ticket.SerializeAsString());
    const auto verified = PollFor<LandingVerified>(core);
    if (i == 0 && transfers > 1) continue;  // connects and warms up
    bytes += static_cast<double>(verified.bytes);
    time += Seconds(verified.transfer_time);
  }
  return bytes / time;
}

void SendAll(TransferCore* core, const BenchPeer& peer, KvMemory* memory,
             int transfers) {
  for (int i = 0; i < transfers; ++i) {
    Ticket ticket;
    BATON_CHECK(ticket.ParseFromString(peer.Receive()));
    const TransferId id = *core->OpenTransfer(
        ticket, MonotonicNow() + seconds(60), MonotonicNow());
    for (uint32_t b = 0; b < memory->blocks(); ++b) {
      BATON_CHECK(
          core->PushBlock(id, b, memory->BlockSpan(BlockId(b)), 16).ok());
    }
    BATON_CHECK(core->Seal(id, {}).ok());
    PollFor<TransferAcked>(core);
  }
}

// A TransferThread whose events can be waited for.
class Waiter {
 public:
  Waiter(const MakeTransport& make, const kernels::KvLayout& layout)
      : thread_(make(), OptionsFor(layout),
                [this](std::vector<TransferEvent> events) {
                  std::lock_guard lock(mutex_);
                  time_ = MonotonicNow();
                  std::ranges::move(events, std::back_inserter(events_));
                  arrived_.notify_one();
                }) {}

  TransferThread* operator->() { return &thread_; }

  template <class Event>
  MonotonicTime WaitFor() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return Find<Event>(events_).has_value(); });
    events_.clear();
    return time_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<TransferEvent> events_;
  MonotonicTime time_;
  TransferThread thread_;
};

std::string Stamp(MonotonicTime time) {
  return std::to_string(time.time_since_epoch().count());
}

MonotonicTime ReadStamp(const std::string& text) {
  return MonotonicTime(Duration(std::stoll(text)));
}

}  // namespace

MakeTransport TransportMaker(const std::string& mode) {
  if (!mode.starts_with("grpc")) {
    return [] { return Must(MakeUcxTransport({})); };
  }
  GrpcTransportOptions options;
  if (mode == "grpc_tls") {
    const char* dir = std::getenv(kCertificates);
    BATON_CHECK(dir != nullptr);
    const std::string prefix = dir;
    options.tls = Must(TlsCredentials::Load({.cert = prefix + "/prefill.crt",
                                             .key = prefix + "/prefill.key",
                                             .ca = prefix + "/ca.crt"},
                                            PeerRole::kPrefill));
  }
  return [options] { return Must(MakeGrpcTransport(options)); };
}

Rates BatonRates(const MakeTransport& make, const BenchPeer& peer,
                 bool receiver, const std::vector<size_t>& sizes) {
  Rates rates;
  for (const size_t size : sizes) {
    const kernels::KvLayout layout = LayoutOf(size);
    const auto blocks = static_cast<uint32_t>(
        std::clamp<size_t>((size_t{64} << 20) / size, 8, 2048));
    const int transfers =
        1 + std::max<int>(2, RoundsFor(size) / static_cast<int>(blocks));
    const auto memory = Memory(layout, blocks);
    const auto transport = make();
    TransferCore core(transport.get(), OptionsFor(layout));
    if (receiver) {
      rates[size] = ReceiveAt(&core, peer, memory.get(), transfers);
    } else {
      SendAll(&core, peer, memory.get(), transfers);
    }
    core.CloseLinks();
    std::vector<TransferEvent> ignored;
    while (core.open_links() > 0) core.Poll(MonotonicNow(), &ignored);
    peer.Meet();
  }
  return rates;
}

HandOverTimes HandOver(const MakeTransport& make, const BenchPeer& peer,
                       bool receiver, int runs) {
  constexpr kernels::KvLayout kLayout{.layers = 30,
                                      .kv_heads = 3,
                                      .head_dim = 64,
                                      .type = kernels::KvType::kF16};
  constexpr uint32_t kBlocks = 32;
  constexpr uint32_t kChunk = 8;
  HandOverTimes times;
  const auto memory = Memory(kLayout, kBlocks);
  Waiter waiter(make, kLayout);
  for (int run = 0; run < runs + 1; ++run) {
    if (!receiver) {
      Ticket ticket;
      BATON_CHECK(ticket.ParseFromString(peer.Receive()));
      const TransferId id =
          *waiter->OpenTransfer(ticket, MonotonicNow() + seconds(60));
      const MonotonicTime first = MonotonicNow();
      MonotonicTime last = first;
      for (uint32_t b = 0; b < kBlocks; ++b) {
        if (b > 0 && b % kChunk == 0)
          std::this_thread::sleep_for(milliseconds(20));
        last = MonotonicNow();
        waiter->PushBlock(id, b, memory->BlockSpan(BlockId(b)), 16);
      }
      waiter->Seal(id, {});
      const MonotonicTime acked = waiter.WaitFor<TransferAcked>();
      peer.Send(Stamp(first));
      peer.Send(Stamp(last));
      peer.Send(Stamp(acked));
      continue;
    }
    const MonotonicTime issued = MonotonicNow();
    const Ticket ticket = *waiter->OpenLanding(SpecFor(memory.get()));
    peer.Send(ticket.SerializeAsString());
    const MonotonicTime verified = waiter.WaitFor<LandingVerified>();
    const MonotonicTime first = ReadStamp(peer.Receive());
    const MonotonicTime last = ReadStamp(peer.Receive());
    const MonotonicTime acked = ReadStamp(peer.Receive());
    if (run == 0) continue;  // connects
    times.reserve_to_begin.push_back(Milliseconds(first - issued));
    times.stream.push_back(Milliseconds(last - first));
    times.exposed.push_back(Milliseconds(verified - last));
    times.acknowledge.push_back(Milliseconds(acked - verified));
  }
  peer.Meet();
  return times;
}

}  // namespace baton::transfer
