#include "kv_transfer/grpc/grpc_engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/rpc/channel.h"
#include "kv_transfer/grpc/grpc_address.h"

namespace baton::transfer {
namespace {

constexpr size_t kPieceBytes = 256 << 10;
constexpr int kMaxPieceMessageBytes = static_cast<int>(kPieceBytes) + 4096;
constexpr int kWindowBytes = 4 << 20;
constexpr size_t kMaxAcceptedLinks = 512;
constexpr int kPiecesPerTurn = 4;
constexpr Duration kEndWait = std::chrono::milliseconds(20);

const std::vector<PeerRole>& Workers() {
  static const std::vector<PeerRole> roles = {PeerRole::kPrefill,
                                              PeerRole::kDecode};
  return roles;
}

absl::Span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

GrpcEngine::GrpcEngine(const GrpcTransportOptions& options)
    : options_(options),
      bell_(std::make_shared<GrpcBell>()),
      service_(kMaxAcceptedLinks, bell_) {}

absl::Status GrpcEngine::Start() {
  ListenOptions listen;
  listen.address = options_.listen;
  listen.insecure_any_address = options_.insecure;
  listen.max_message_bytes = kMaxPieceMessageBytes;
  listen.tls = options_.tls;
  listen.admitted = Workers();
  listen.stream_window_bytes = kWindowBytes;
  BATON_ASSIGN_OR_RETURN(server_, RpcServer::Start(listen, {&service_}));
  BATON_ASSIGN_OR_RETURN(const HostPort bound,
                         ParseHostPort(server_->address()));
  address_ = FormatGrpcAddress(ReachableAddress(bound));
  return absl::OkStatus();
}

GrpcEngine::~GrpcEngine() {
  service_.Stop();
  for (auto& pipe : service_.TakeArrivals()) Add(std::move(pipe), true);
  for (auto& [id, link] : links_) ended_.push_back(std::move(link));
  for (Link& link : ended_) link.pipe->Close();
  if (server_ != nullptr) server_->Shutdown(Duration::zero());
  while (!ended_.empty()) {
    Sweep();
    if (!ended_.empty()) bell_->Wait(kEndWait);
  }
}

void GrpcEngine::Add(std::unique_ptr<GrpcPipe> pipe, bool accepted) {
  Link& link = links_[LinkId(next_link_++)];
  link.pipe = std::move(pipe);
  link.accepted = accepted;
}

absl::StatusOr<LinkId> GrpcEngine::Connect(std::string_view address) {
  BATON_ASSIGN_OR_RETURN(const HostPort peer, ParseGrpcAddress(address));
  ChannelOptions channel;
  channel.max_message_bytes = kMaxPieceMessageBytes;
  channel.own_connection = true;
  channel.tls = options_.tls;
  channel.peer_roles = Workers();
  channel.stream_window_bytes = kWindowBytes;
  Add(OpenGrpcStream(peer.ToString(), channel, bell_), /*accepted=*/false);
  return LinkId(next_link_ - 1);
}

absl::Status GrpcEngine::Send(LinkId id, SendId send,
                              absl::Span<const std::byte> header,
                              absl::Span<const std::byte> payload) {
  if (header.empty() || header.size() > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(StrCat(
        "header: got ", header.size(), " bytes, allowed 1..", kMaxHeaderBytes));
  }
  auto it = links_.find(id);
  if (it == links_.end() || it->second.ending) {
    return absl::NotFoundError("the link is over");
  }
  it->second.sends.push_back(
      {send,
       std::string(reinterpret_cast<const char*>(header.data()), header.size()),
       payload});
  bell_->Ring();
  return absl::OkStatus();
}

void GrpcEngine::Close(LinkId id) {
  auto it = links_.find(id);
  if (it == links_.end() || it->second.ending) return;
  it->second.ending = absl::CancelledError("closed by force");
  bell_->Ring();
}

bool GrpcEngine::Progress(TransportHandler* handler) {
  for (auto& pipe : service_.TakeArrivals()) Add(std::move(pipe), true);
  Sweep();
  bool any = false;
  // Callbacks may add links, which leaves iterators valid.
  for (auto it = links_.begin(); it != links_.end();) {
    const LinkId id = it->first;
    Link& link = (it++)->second;
    any |= Receive(id, &link, handler);
    any |= Pump(id, &link, handler);
    if (!link.ending) link.ending = link.pipe->Over();
    if (!link.ending) continue;
    Finish(id, handler);
    any = true;
  }
  return any;
}

bool GrpcEngine::Receive(LinkId id, Link* link, TransportHandler* handler) {
  for (int i = 0; i < kPiecesPerTurn; ++i) {
    if (link->ending) return i > 0;
    const std::optional<v1::LinkPiece> piece = link->pipe->Take();
    if (!piece) return i > 0;
    const absl::Status status = Accept(id, link, *piece, handler);
    if (!status.ok() && !link->ending) link->ending = status;
  }
  return true;
}

// Checks a piece and puts it where it belongs.
absl::Status GrpcEngine::Accept(LinkId id, Link* link,
                                const v1::LinkPiece& piece,
                                TransportHandler* handler) {
  const std::string& data = piece.data();
  if (link->incoming.has_value() != piece.header().empty() ||
      piece.header().size() > kMaxHeaderBytes) {
    return absl::DataLossError("link: a piece that is out of place");
  }
  if (!link->incoming) {
    Incoming& incoming = link->incoming.emplace();
    incoming.header = piece.header();
    incoming.expected = piece.payload_bytes();
    if (data.size() <= incoming.expected) {
      incoming.place =
          handler->OnHeader(id, BytesOf(incoming.header), incoming.expected);
      if (link->ending) return absl::OkStatus();
    }
  }
  Incoming& incoming = *link->incoming;
  const size_t missing = incoming.expected - incoming.received;
  if (data.size() > missing || (data.empty() && missing > 0)) {
    return absl::DataLossError(StrCat("link: a piece of ", data.size(),
                                      " bytes where ", missing,
                                      " are missing"));
  }
  if (!incoming.place.empty()) {
    std::memcpy(incoming.place.data() + incoming.received, data.data(),
                data.size());
  }
  incoming.received += data.size();
  if (incoming.received < incoming.expected) return absl::OkStatus();
  const Incoming done = *std::exchange(link->incoming, std::nullopt);
  handler->OnMessage(id, BytesOf(done.header), done.place);
  return absl::OkStatus();
}

bool GrpcEngine::Pump(LinkId id, Link* link, TransportHandler* handler) {
  bool any = false;
  while (!link->ending && !link->sends.empty() && link->pipe->HasRoom()) {
    Outgoing& next = link->sends.front();
    v1::LinkPiece piece;
    if (next.sent == 0) {
      piece.set_header(next.header);
      piece.set_payload_bytes(next.payload.size());
    }
    const size_t count = std::min(kPieceBytes, next.payload.size() - next.sent);
    piece.set_data(next.payload.data() + next.sent, count);
    next.sent += count;
    link->pipe->Put(std::move(piece));
    any = true;
    if (next.sent < next.payload.size()) continue;
    const SendId send = next.send;
    link->sends.pop_front();
    handler->OnSent(id, send, absl::OkStatus());
  }
  return any;
}

void GrpcEngine::Finish(LinkId id, TransportHandler* handler) {
  Link link = std::move(links_.extract(id).mapped());
  link.pipe->Close();
  const absl::Status why = *link.ending;
  const std::deque<Outgoing> unsent = std::exchange(link.sends, {});
  ended_.push_back(std::move(link));
  for (const Outgoing& outgoing : unsent) {
    handler->OnSent(id, outgoing.send, why);
  }
  handler->OnClosed(id, why);
}

void GrpcEngine::Sweep() {
  size_t accepted = 0;
  std::erase_if(ended_, [&](const Link& link) {
    if (!link.pipe->finished()) return false;
    accepted += link.accepted ? 1 : 0;
    return true;
  });
  service_.Forget(accepted);
}

}  // namespace baton::transfer
