#include "tests/unit/kv_transfer/fake_network.h"

#include <cstring>

#include "common/base/check.h"

namespace baton::transfer {

absl::StatusOr<LinkId> FakeTransport::Connect(std::string_view address) {
  auto it = network_->transports_.find(address);
  if (it == network_->transports_.end()) {
    return absl::InvalidArgumentError("address: unknown");
  }
  FakeNetwork::Ends& ends = network_->links_.emplace_back();
  ends.transports[0] = this;
  ends.transports[1] = it->second.get();
  ends.links[0] = LinkId(network_->next_link_++);
  ends.links[1] = LinkId(network_->next_link_++);
  return ends.links[0];
}

absl::Status FakeTransport::Send(LinkId link, SendId send,
                                 absl::Span<const std::byte> header,
                                 absl::Span<const std::byte> payload) {
  FakeNetwork::Ends* ends = network_->Find(this, link);
  if (ends == nullptr || !ends->open) return absl::NotFoundError("link");
  const int side = FakeNetwork::Side(*ends, this, link);
  Packet packet{};
  packet.from = this;
  packet.to = ends->transports[1 - side];
  packet.from_link = link;
  packet.to_link = ends->links[1 - side];
  packet.send = send;
  packet.header.assign(header.begin(), header.end());
  packet.payload = payload;
  network_->wire.push_back(std::move(packet));
  return absl::OkStatus();
}

void FakeTransport::Close(LinkId link) {
  FakeNetwork::Ends* ends = network_->Find(this, link);
  if (ends == nullptr || !ends->open) return;
  ++network_->closes_;
  ends->open = false;
  if (network_->hold_closes) {
    network_->closing_.push_back(ends);
  } else {
    network_->CloseLink(ends);
  }
}

bool FakeTransport::Progress(TransportHandler* handler) {
  const bool any = !due_.empty();
  while (!due_.empty()) {
    const auto call = std::move(due_.front());
    due_.pop_front();
    call(handler);
  }
  return any;
}

FakeTransport* FakeNetwork::Add(std::string address) {
  auto transport = std::make_unique<FakeTransport>(this, address);
  return (transports_[std::move(address)] = std::move(transport)).get();
}

FakeNetwork::Ends* FakeNetwork::Find(const FakeTransport* transport,
                                     LinkId link) {
  for (Ends& ends : links_) {
    for (int side = 0; side < 2; ++side) {
      if (ends.transports[side] == transport && ends.links[side] == link) {
        return &ends;
      }
    }
  }
  return nullptr;
}

bool FakeNetwork::IsOpen(FakeTransport* transport, LinkId link) const {
  const Ends* ends = const_cast<FakeNetwork*>(this)->Find(transport, link);
  return ends != nullptr && ends->open;
}

void FakeNetwork::CloseLink(Ends* ends) {
  for (int side = 0; side < 2; ++side) {
    FakeTransport* transport = ends->transports[side];
    const LinkId link = ends->links[side];
    std::vector<SendId> lost;
    std::erase_if(wire, [&](const Packet& packet) {
      if (packet.from != transport || packet.from_link != link) return false;
      if (!packet.copy) lost.push_back(packet.send);
      return true;
    });
    transport->Soon([link, lost](TransportHandler* handler) {
      const absl::Status status = absl::UnavailableError("closed");
      for (const SendId send : lost) handler->OnSent(link, send, status);
      handler->OnClosed(link, status);
    });
  }
}

void FakeNetwork::FinishClose() {
  for (Ends* ends : std::exchange(closing_, {})) CloseLink(ends);
}

std::function<void()> FakeNetwork::DeliverHeader(size_t index) {
  BATON_CHECK(index < wire.size());
  auto packet = std::make_shared<Packet>(std::move(wire[index]));
  wire.erase(wire.begin() + static_cast<ptrdiff_t>(index));
  auto place = std::make_shared<absl::Span<std::byte>>();
  Ends* ends = Find(packet->to, packet->to_link);
  packet->to->Soon([packet, place, ends](TransportHandler* handler) {
    if (!ends->open) return;
    const size_t size =
        packet->copy ? packet->own.size() : packet->payload.size();
    *place = handler->OnHeader(packet->to_link, packet->header, size);
    BATON_CHECK(place->empty() || place->size() == size);
  });
  return [this, packet, place, ends, hold = hold_sent] {
    packet->to->Soon([this, packet, place, ends,
                      hold](TransportHandler* handler) {
      if (!ends->open) return;
      if (!place->empty()) {
        const absl::Span<const std::byte> payload =
            packet->copy ? packet->own : packet->payload;
        std::memcpy(place->data(), payload.data(), place->size());
      }
      handler->OnMessage(packet->to_link, packet->header, *place);
      if (packet->copy) return;
      auto sent = [packet, ends] {
        packet->from->Soon([packet, ends](TransportHandler* sender) {
          if (ends->open) {
            sender->OnSent(packet->from_link, packet->send, absl::OkStatus());
          }
        });
      };
      if (hold) {
        held_sent_.emplace_back(std::move(sent));
      } else {
        sent();
      }
    });
  };
}

void FakeNetwork::ReleaseSent() {
  for (const auto& sent : std::exchange(held_sent_, {})) sent();
}

void FakeNetwork::Deliver(size_t index) { DeliverHeader(index)(); }

void FakeNetwork::Drop(size_t index) {
  const Packet packet = std::move(wire[index]);
  wire.erase(wire.begin() + static_cast<ptrdiff_t>(index));
  if (packet.copy) return;
  packet.from->Soon([packet](TransportHandler* handler) {
    handler->OnSent(packet.from_link, packet.send, absl::OkStatus());
  });
}

void FakeNetwork::Duplicate(size_t index) {
  Packet copy = wire[index];
  if (!copy.copy) copy.own.assign(copy.payload.begin(), copy.payload.end());
  copy.copy = true;
  wire.push_back(std::move(copy));
}

void FakeNetwork::ToTheEnd(size_t index) {
  Packet packet = std::move(wire[index]);
  wire.erase(wire.begin() + static_cast<ptrdiff_t>(index));
  wire.push_back(std::move(packet));
}

void FakeNetwork::Inject(FakeTransport* from, LinkId link,
                         std::vector<std::byte> header,
                         absl::Span<const std::byte> payload) {
  Ends* ends = Find(from, link);
  BATON_CHECK(ends != nullptr);
  const int side = Side(*ends, from, link);
  Packet packet{};
  packet.from = from;
  packet.to = ends->transports[1 - side];
  packet.from_link = link;
  packet.to_link = ends->links[1 - side];
  packet.header = std::move(header);
  packet.own.assign(payload.begin(), payload.end());
  packet.copy = true;
  wire.push_back(std::move(packet));
}

}  // namespace baton::transfer
