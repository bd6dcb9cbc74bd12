#include "kv_transfer/loopback/loopback_transport.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "kv_transfer/loopback/loopback_channel.h"

namespace baton::transfer {
namespace {

constexpr std::string_view kPrefix = "loopback:";
constexpr int kParcelsPerTurn = 16;

// Channels that peers have opened and their acceptor has not seen yet.
struct Doorway {
  std::shared_ptr<LoopbackBell> bell = std::make_shared<LoopbackBell>();
  std::mutex mutex;
  std::vector<std::shared_ptr<LoopbackChannel>> arrivals;  // mutex
  bool closed = false;                                     // mutex
};

}  // namespace

struct LoopbackHub::Directory {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Doorway>, std::less<>> doorways;
  uint64_t next = 1;
};

class LoopbackTransport final : public Transport {
 public:
  explicit LoopbackTransport(std::shared_ptr<LoopbackHub::Directory> directory)
      : directory_(std::move(directory)),
        doorway_(std::make_shared<Doorway>()) {
    std::lock_guard lock(directory_->mutex);
    address_ = StrCat(kPrefix, directory_->next++);
    directory_->doorways.emplace(address_, doorway_);
  }

  ~LoopbackTransport() override {
    {
      std::lock_guard lock(directory_->mutex);
      directory_->doorways.erase(address_);
    }
    AcceptArrivals(/*last=*/true);
    for (auto& [id, link] : links_) {
      link.channel->Close(absl::UnavailableError("the peer is gone"));
    }
    // The peer may be copying from memory of this side's user right now.
    for (auto& [id, link] : links_) {
      while (true) {
        link.channel->TakeReceipts(link.end);
        if (link.channel->TakeClosed(link.end)) break;
        doorway_->bell->Wait(std::chrono::milliseconds(1));
      }
    }
  }

  std::string_view name() const override { return "loopback"; }
  std::string address() const override { return address_; }

  absl::StatusOr<LinkId> Connect(std::string_view address) override {
    if (address.substr(0, kPrefix.size()) != kPrefix ||
        address.size() > kMaxAddressBytes) {
      return absl::InvalidArgumentError(
          "address: not one of a loopback transport");
    }
    std::shared_ptr<Doorway> peer;
    {
      std::lock_guard lock(directory_->mutex);
      auto it = directory_->doorways.find(address);
      if (it != directory_->doorways.end()) peer = it->second;
    }
    auto channel = std::make_shared<LoopbackChannel>(
        doorway_->bell, peer ? peer->bell : doorway_->bell);
    if (!Enter(peer.get(), channel)) {
      channel->Close(
          absl::UnavailableError(StrCat("nobody at address ", address)));
    }
    return Add(std::move(channel), 0);
  }

  absl::Status Send(LinkId id, SendId send, absl::Span<const std::byte> header,
                    absl::Span<const std::byte> payload) override {
    if (header.empty() || header.size() > kMaxHeaderBytes) {
      return absl::InvalidArgumentError(StrCat("header: got ", header.size(),
                                               " bytes, allowed 1..",
                                               kMaxHeaderBytes));
    }
    auto it = links_.find(id);
    if (it == links_.end() ||
        !it->second.channel->Put(
            it->second.end,
            {send,
             std::string(reinterpret_cast<const char*>(header.data()),
                         header.size()),
             payload})) {
      return absl::NotFoundError("the link is over");
    }
    return absl::OkStatus();
  }

  void Close(LinkId id) override {
    auto it = links_.find(id);
    if (it != links_.end()) {
      it->second.channel->Close(absl::CancelledError("closed by force"));
    }
  }

  bool Progress(TransportHandler* handler) override {
    AcceptArrivals(/*last=*/false);
    bool any = false;
    for (auto it = links_.begin(); it != links_.end();) {
      // A callback may add links, which leaves the iterator valid.
      const LinkId id = it->first;
      Link& link = it->second;
      any |= ReportSent(id, link, handler);
      any |= Deliver(id, link, handler);
      if (const auto closed = link.channel->TakeClosed(link.end)) {
        it = links_.erase(it);
        handler->OnClosed(id, *closed);
        any = true;
      } else {
        ++it;
      }
    }
    return any;
  }

  void Wait(Duration timeout) override { doorway_->bell->Wait(timeout); }
  void Wake() override { doorway_->bell->Ring(); }

 private:
  struct Link {
    std::shared_ptr<LoopbackChannel> channel;
    int end;
  };

  static bool Enter(Doorway* peer,
                    const std::shared_ptr<LoopbackChannel>& channel) {
    if (peer == nullptr) return false;
    std::lock_guard lock(peer->mutex);
    if (peer->closed) return false;
    peer->arrivals.push_back(channel);
    peer->bell->Ring();
    return true;
  }

  LinkId Add(std::shared_ptr<LoopbackChannel> channel, int end) {
    const LinkId id(next_link_++);
    links_.emplace(id, Link{std::move(channel), end});
    return id;
  }

  void AcceptArrivals(bool last) {
    std::vector<std::shared_ptr<LoopbackChannel>> arrivals;
    {
      std::lock_guard lock(doorway_->mutex);
      doorway_->closed = last;
      arrivals.swap(doorway_->arrivals);
    }
    for (auto& channel : arrivals) Add(std::move(channel), 1);
  }

  static bool ReportSent(LinkId id, const Link& link,
                         TransportHandler* handler) {
    const auto receipts = link.channel->TakeReceipts(link.end);
    for (const LoopbackChannel::Receipt& receipt : receipts) {
      handler->OnSent(id, receipt.send, receipt.status);
    }
    return !receipts.empty();
  }

  static bool Deliver(LinkId id, const Link& link, TransportHandler* handler) {
    for (int i = 0; i < kParcelsPerTurn; ++i) {
      const auto parcel = link.channel->Take(link.end);
      if (!parcel) return i > 0;
      const absl::Span<const std::byte> header(
          reinterpret_cast<const std::byte*>(parcel->header.data()),
          parcel->header.size());
      const absl::Span<std::byte> place =
          handler->OnHeader(id, header, parcel->payload.size());
      if (!place.empty()) {
        std::memcpy(place.data(), parcel->payload.data(), place.size());
      }
      link.channel->Return(link.end, parcel->send);
      handler->OnMessage(id, header, place);
    }
    return true;
  }

  std::shared_ptr<LoopbackHub::Directory> directory_;
  std::shared_ptr<Doorway> doorway_;
  std::string address_;
  std::map<LinkId, Link> links_;
  uint64_t next_link_ = 1;
};

LoopbackHub::LoopbackHub() : directory_(std::make_shared<Directory>()) {}
LoopbackHub::~LoopbackHub() = default;

std::unique_ptr<Transport> LoopbackHub::MakeTransport() {
  return std::make_unique<LoopbackTransport>(directory_);
}

}  // namespace baton::transfer
