#include "tests/simulation/sim_transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/strings.h"

namespace baton::simulation {

using transfer::LinkId;
using transfer::SendId;
using transfer::TransportHandler;

struct SimNetwork::End {
  SimTransport* transport = nullptr;  // null: the process is dead
  std::string process;
  std::deque<std::shared_ptr<Message>> departing;  // in order
  LinkId id;
  std::weak_ptr<End> peer;
  MonotonicTime last_departure{};
  MonotonicTime last_arrival{};     // of what this end sent, at the peer
  MonotonicTime last_completion{};  // of what this end receives
  bool closing = false;
  bool closed = false;
  absl::Status status;
  std::map<uint64_t, std::shared_ptr<Message>> sending;    // no OnSent yet
  std::map<uint64_t, std::shared_ptr<Message>> receiving;  // no OnMessage yet
};

struct SimNetwork::Message {
  uint64_t number = 0;
  std::shared_ptr<End> from;
  std::shared_ptr<End> to;
  SendId send;
  absl::Span<const std::byte> header;   // sender's memory until departed
  absl::Span<const std::byte> payload;  // sender's memory until read
  size_t payload_bytes = 0;
  std::vector<std::byte> wire_header;
  std::vector<std::byte> wire;
  absl::Span<std::byte> destination;  // receiver's memory until written
  MonotonicTime read_time{};
  bool read = false;
  bool sent = false;     // OnSent delivered
  bool placed = false;   // OnHeader has answered
  bool written = false;  // nothing of it touches the receiver any more
};

SimNetwork::SimNetwork(EventQueue* events, const Partitions* partitions,
                       Random random, NetworkFaults faults)
    : events_(events),
      partitions_(partitions),
      random_(random),
      faults_(faults) {}

SimNetwork::~SimNetwork() { BATON_CHECK(transports_.empty()); }

std::unique_ptr<SimTransport> SimNetwork::NewTransport(
    std::string process, std::string address, std::function<void()> wake) {
  BATON_CHECK(!transports_.contains(address));
  auto transport = std::unique_ptr<SimTransport>(
      new SimTransport(this, std::move(process), address, std::move(wake)));
  transports_[address] = transport.get();
  return transport;
}

void SimNetwork::Heal() {
  faults_.break_per_message = 0;
  faults_.stall_per_message = 0;
  faults_.flip_per_message = 0;
  faults_.send_error_per_message = 0;
  faults_.duplicate_per_message = 0;
}

std::vector<SimNetwork::Claim> SimNetwork::Claims(
    const SimTransport* transport) const {
  std::vector<Claim> claims;
  for (const auto& [id, end] : transport->ends_) {
    for (const auto& [number, message] : end->sending) {
      if (!message->read) {
        claims.push_back({number, message->payload.data(), false});
      }
    }
    for (const auto& [number, message] : end->receiving) {
      if (message->placed) {
        claims.push_back({number, message->destination.data(), true});
      }
    }
  }
  return claims;
}

Duration SimNetwork::Delay() {
  return random_.Between(faults_.min_delay, faults_.max_delay);
}

void SimNetwork::Start(const std::shared_ptr<End>& from, SendId send,
                       absl::Span<const std::byte> header,
                       absl::Span<const std::byte> payload) {
  auto message = std::make_shared<Message>();
  message->number = next_message_++;
  message->from = from;
  message->to = from->peer.lock();
  message->send = send;
  message->header = header;
  message->payload = payload;
  message->payload_bytes = payload.size();
  from->sending[message->number] = message;
  ++counters_.messages;
  from->last_departure =
      std::max(from->last_departure + Duration(1),
               events_->now() + random_.Between(Duration(0), Delay()));
  if (random_.Chance(faults_.stall_per_message)) {
    ++counters_.stalled_links;
    from->last_departure += faults_.stall_time;
  }
  from->departing.push_back(message);
  events_->At(from->last_departure, [this, from] { DepartNext(from); });
}

// One of these for each departing message; a partition holds them all up.
void SimNetwork::DepartNext(const std::shared_ptr<End>& from) {
  if (from->departing.empty()) return;
  const std::shared_ptr<Message> message = from->departing.front();
  if (message->to != nullptr && from->transport != nullptr) {
    const MonotonicTime opens =
        partitions_->OpensAt(from->process, message->to->process);
    if (opens > events_->now()) {
      events_->At(opens + Delay(), [this, from] { DepartNext(from); });
      return;
    }
  }
  from->departing.pop_front();
  Depart(message);
}

// The header leaves, the payload is read a little later; the sender hears of
// it later still. The header arrives in order.
void SimNetwork::Depart(const std::shared_ptr<Message>& message) {
  const std::shared_ptr<End>& from = message->from;
  if (message->sent || from->closed || from->transport == nullptr) return;
  if (random_.Chance(faults_.break_per_message)) {
    ++counters_.broken_links;
    BeginClose(from, absl::UnavailableError("link broken"));
    if (message->to) {
      BeginClose(message->to, absl::UnavailableError("link broken"));
    }
    return;
  }
  message->wire_header.assign(message->header.begin(), message->header.end());
  message->read_time = events_->now() + random_.Between(Duration(0), Delay());
  events_->At(message->read_time, [this, message] {
    if (message->sent || message->from->transport == nullptr) return;
    message->wire.assign(message->payload.begin(), message->payload.end());
    message->read = true;
    if (!message->wire.empty() && random_.Chance(faults_.flip_per_message)) {
      ++counters_.flipped_bits;
      message->wire[random_.Below(message->wire.size())] ^=
          std::byte(1u << random_.Below(8));
    }
    if (random_.Chance(faults_.duplicate_per_message)) Repeat(message);
    const bool fails = random_.Chance(faults_.send_error_per_message);
    if (fails) ++counters_.send_errors;
    events_->After(Delay(), [this, message, fails] {
      End& end = *message->from;
      if (message->sent || end.transport == nullptr) return;
      message->sent = true;
      end.sending.erase(message->number);
      end.transport->Deliver(
          [id = end.id, message, fails](TransportHandler* handler) {
            handler->OnSent(id, message->send,
                            fails ? absl::UnavailableError("completed in error")
                                  : absl::OkStatus());
          });
    });
  });
  if (message->to == nullptr) return;  // refused: the link will close
  from->last_arrival =
      std::max(from->last_arrival + Duration(1), events_->now() + Delay());
  Arrive(message, from->last_arrival);
}

void SimNetwork::Repeat(const std::shared_ptr<Message>& message) {
  if (message->to == nullptr) return;
  ++counters_.duplicates;
  auto again = std::make_shared<Message>();
  again->number = next_message_++;
  again->from = message->from;
  again->to = message->to;
  again->payload_bytes = message->payload_bytes;
  again->wire_header = message->wire_header;
  again->wire = message->wire;
  again->read_time = message->read_time;
  again->read = true;
  // Never ahead of the first.
  Arrive(again, std::max(message->from->last_arrival, events_->now()) +
                    Duration(1) + Delay());
}

void SimNetwork::Arrive(const std::shared_ptr<Message>& message,
                        MonotonicTime when) {
  events_->At(when, [this, message] {
    End& to = *message->to;
    if (to.closed || to.transport == nullptr) return;
    to.receiving[message->number] = message;
    to.transport->Deliver([this, message](TransportHandler* handler) {
      if (message->to->closed) return;
      Place(message, handler->OnHeader(message->to->id, message->wire_header,
                                       message->payload_bytes));
    });
  });
}

void SimNetwork::Place(const std::shared_ptr<Message>& message,
                       absl::Span<std::byte> destination) {
  BATON_CHECK(destination.empty() ||
              destination.size() == message->payload_bytes);
  message->destination = destination;
  message->placed = true;
  const MonotonicTime start = std::max(events_->now(), message->read_time);
  const MonotonicTime middle =
      start + random_.Between(Duration(1), faults_.max_payload_time);
  MonotonicTime end =
      middle + random_.Between(Duration(1), faults_.max_payload_time);
  if (faults_.completions_in_order) {
    end = std::max(end, message->to->last_completion + Duration(1));
    message->to->last_completion = end;
  }
  const size_t half = destination.size() / 2;
  auto write = [message](size_t first, size_t last) {
    if (message->written || message->to->transport == nullptr) return;
    if (!message->read) return;  // the sender died before it was read
    std::copy(message->wire.begin() + first, message->wire.begin() + last,
              message->destination.begin() + first);
  };
  if (message->payload_bytes > 0) {
    events_->At(middle, [write, half] { write(0, half); });
  }
  events_->At(end, [this, message, write, half] {
    if (message->written) return;
    if (!message->read && message->payload_bytes > 0) return;
    write(half, message->destination.size());
    message->written = true;
    End& to = *message->to;
    to.receiving.erase(message->number);
    if (to.transport == nullptr) return;
    to.transport->Deliver([message](TransportHandler* handler) {
      handler->OnMessage(message->to->id, message->wire_header,
                         message->destination);
    });
  });
}

void SimNetwork::BeginClose(const std::shared_ptr<End>& end,
                            absl::Status status) {
  if (end->closing || end->closed || end->transport == nullptr) return;
  end->closing = true;
  end->status = std::move(status);
  events_->After(random_.Between(Duration(0), faults_.max_close_time),
                 [this, end] { FinishClose(end); });
  if (std::shared_ptr<End> peer = end->peer.lock()) {
    TellOfClose(end->process, peer,
                absl::UnavailableError("closed by the peer"));
  }
}

void SimNetwork::TellOfClose(const std::string& process,
                             const std::shared_ptr<End>& peer,
                             absl::Status status) {
  const MonotonicTime opens = partitions_->OpensAt(process, peer->process);
  const MonotonicTime when = std::max(opens, events_->now()) + Delay();
  events_->At(when, [this, process, peer, status = std::move(status)] {
    if (partitions_->OpensAt(process, peer->process) > events_->now()) {
      TellOfClose(process, peer, status);
    } else {
      BeginClose(peer, status);
    }
  });
}

void SimNetwork::FinishClose(const std::shared_ptr<End>& end) {
  if (end->closed || end->transport == nullptr) return;
  end->closed = true;
  end->departing.clear();
  for (auto& [number, message] : end->sending) {
    message->sent = true;
    end->transport->Deliver([id = end->id,
                             message = message](TransportHandler* handler) {
      handler->OnSent(id, message->send, absl::CancelledError("link closed"));
    });
  }
  end->sending.clear();
  for (auto& [number, message] : end->receiving) {
    if (message->placed) ++counters_.closed_with_writes_pending;
    message->written = true;
  }
  end->receiving.clear();
  SimTransport* transport = end->transport;
  transport->Deliver([transport, end](TransportHandler* handler) {
    transport->ends_.erase(end->id);
    handler->OnClosed(end->id, end->status);
  });
}

SimTransport::SimTransport(SimNetwork* network, std::string process,
                           std::string address, std::function<void()> wake)
    : network_(network),
      process_(std::move(process)),
      address_(std::move(address)),
      wake_(std::move(wake)) {}

SimTransport::~SimTransport() {
  network_->transports_.erase(address_);
  for (auto& [id, end] : ends_) {
    end->transport = nullptr;
    end->departing.clear();
    end->sending.clear();
    end->receiving.clear();
    if (std::shared_ptr<SimNetwork::End> peer = end->peer.lock()) {
      network_->TellOfClose(process_, peer,
                            absl::UnavailableError("peer died"));
    }
  }
}

std::shared_ptr<SimNetwork::End> SimTransport::NewEnd() {
  auto end = std::make_shared<SimNetwork::End>();
  end->transport = this;
  end->process = process_;
  end->id = LinkId(next_link_++);
  ends_[end->id] = end;
  return end;
}

absl::StatusOr<LinkId> SimTransport::Connect(std::string_view address) {
  if (address.empty()) return absl::InvalidArgumentError("address: empty");
  if (silent_) return absl::UnavailableError("dead");
  std::shared_ptr<SimNetwork::End> end = NewEnd();
  const auto it = network_->transports_.find(std::string(address));
  if (it == network_->transports_.end()) {
    network_->events_->After(network_->Delay(), [network = network_, end] {
      network->BeginClose(end, absl::UnavailableError("no such peer"));
    });
  } else {
    std::shared_ptr<SimNetwork::End> peer = it->second->NewEnd();
    end->peer = peer;
    peer->peer = end;
  }
  return end->id;
}

absl::Status SimTransport::Send(LinkId link, SendId send,
                                absl::Span<const std::byte> header,
                                absl::Span<const std::byte> payload) {
  const auto it = ends_.find(link);
  if (it == ends_.end() || it->second->closing || it->second->closed) {
    return absl::NotFoundError(absl::StrCat("link ", link.value(), " is over"));
  }
  BATON_CHECK(header.size() <= transfer::kMaxHeaderBytes);
  if (silent_) return absl::OkStatus();
  network_->Start(it->second, send, header, payload);
  return absl::OkStatus();
}

void SimTransport::Close(LinkId link) {
  const auto it = ends_.find(link);
  if (it == ends_.end()) return;
  network_->BeginClose(it->second, absl::CancelledError("closed"));
}

bool SimTransport::Progress(TransportHandler* handler) {
  const bool any = !inbox_.empty();
  while (!inbox_.empty()) {
    Callback callback = std::move(inbox_.front());
    inbox_.pop_front();
    callback(handler);
  }
  return any;
}

void SimTransport::Deliver(Callback callback) {
  inbox_.push_back(std::move(callback));
  wake_();
}

}  // namespace baton::simulation
