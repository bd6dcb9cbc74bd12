#include "kv_transfer/ucx/ucx_engine.h"

#include <algorithm>
#include <cstring>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::transfer {
namespace {

constexpr size_t kMaxEarly = 256;
constexpr unsigned kMessage = 1;

absl::Span<const std::byte> BytesOf(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

absl::Status UcxEngine::Start(const UcxOptions& options) {
  BATON_ASSIGN_OR_RETURN(
      workers_, UcxWorkerSet::Create(options, [this](UcxWorker* worker) {
        return worker->OnActiveMessage(kMessage, OnActiveMessage, this);
      }));
  BATON_ASSIGN_OR_RETURN(
      address_, workers_->front()->Listen(workers_->context().interface(),
                                          OnConnectionRequest, this));
  return absl::OkStatus();
}

absl::Status UcxEngine::Send(LinkId id, SendId send_id,
                             absl::Span<const std::byte> header,
                             absl::Span<const std::byte> payload) {
  UcxLink* link = Find(id);
  if (link == nullptr || link->ending) {
    return absl::NotFoundError("the link is over");
  }
  if (header.empty() || header.size() > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(StrCat(
        "header: got ", header.size(), " bytes, allowed 1..", kMaxHeaderBytes));
  }
  auto send = MakeSend(link, send_id, header, payload);
  if (link->welcomed) {
    Post(link, std::move(send));
  } else {
    link->waiting.splice(link->waiting.end(), send);
  }
  return absl::OkStatus();
}

std::list<UcxSend> UcxEngine::MakeSend(UcxLink* link, SendId id,
                                       absl::Span<const std::byte> header,
                                       absl::Span<const std::byte> payload) {
  std::list<UcxSend> sends(1);
  UcxSend* send = &sends.front();
  const UcxPrefix prefix{link->next_out++};
  std::memcpy(send->header.data(), &prefix, sizeof(prefix));
  if (!header.empty()) {
    std::memcpy(send->header.data() + sizeof(prefix), header.data(),
                header.size());
  }
  send->engine = link->engine;
  send->link = link->id;
  send->send = id;
  send->header_bytes = sizeof(prefix) + header.size();
  send->payload = payload;
  send->self = sends.begin();
  return sends;
}

void UcxEngine::Post(UcxLink* link, std::list<UcxSend> sends) {
  UcxSend* send = &sends.front();
  link->sends.splice(link->sends.end(), sends);
  workers_->Touch(link->worker);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                       UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.cb.send = OnSendDone;
  param.user_data = send;
  param.flags = UCP_AM_SEND_FLAG_REPLY;
  void* request = ucp_am_send_nbx(link->endpoint, kMessage, send->header.data(),
                                  send->header_bytes, send->payload.data(),
                                  send->payload.size(), &param);
  if (request == nullptr || UCS_PTR_IS_ERR(request)) {
    SendEnded(send, UCS_PTR_STATUS(request));
  }
}

void UcxEngine::Welcomed(UcxLink* link) {
  if (std::exchange(link->welcomed, true)) return;
  while (!link->waiting.empty()) {
    std::list<UcxSend> next;
    next.splice(next.end(), link->waiting, link->waiting.begin());
    Post(link, std::move(next));
  }
}

void UcxEngine::OnSendDone(void* request, ucs_status_t status, void* argument) {
  ucp_request_free(request);
  auto* send = static_cast<UcxSend*>(argument);
  send->engine->SendEnded(send, status);
}

void UcxEngine::SendEnded(UcxSend* send, ucs_status_t status) {
  if (send->send != SendId()) {
    sent_.push_back(
        {send->link, send->send,
         status == UCS_OK ? absl::OkStatus() : UcxError("send", status)});
  }
  Find(send->link)->sends.erase(send->self);
}

ucs_status_t UcxEngine::OnActiveMessage(void* argument, const void* header,
                                        size_t header_bytes, void* data,
                                        size_t length,
                                        const ucp_am_recv_param_t* param) {
  auto* self = static_cast<UcxEngine*>(argument);
  UcxPrefix prefix;
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0 ||
      header_bytes < sizeof(prefix) ||
      header_bytes > sizeof(prefix) + kMaxHeaderBytes) {
    return UCS_OK;
  }
  UcxLink* link = self->Find(param->reply_ep);
  if (link == nullptr || link->ending) return UCS_OK;
  std::memcpy(&prefix, header, sizeof(prefix));
  return self->OnData(
      link, prefix.sequence,
      std::string(static_cast<const char*>(header) + sizeof(prefix),
                  header_bytes - sizeof(prefix)),
      data, length, param->recv_attr);
}

ucs_status_t UcxEngine::OnData(UcxLink* link, uint64_t sequence,
                               std::string header, void* data, size_t length,
                               uint64_t flags) {
  const bool rendezvous = (flags & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  if (sequence == link->next_in) {
    ++link->next_in;
    const ucs_status_t status =
        Deliver(link, std::move(header), data, length, rendezvous);
    DeliverEarly(link);
    return status;
  }
  if (sequence < link->next_in || link->early.size() >= kMaxEarly) {
    End(link, absl::DataLossError("message numbers make no sense"));
    return UCS_OK;
  }
  UcxEarly early;
  early.header = std::move(header);
  early.payload_bytes = length;
  const bool keep = rendezvous || (flags & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  if (keep) {
    early.descriptor = data;
    early.rendezvous = rendezvous;
  } else {
    const auto* bytes = static_cast<const std::byte*>(data);
    early.copy.assign(bytes, bytes + length);
  }
  link->early.emplace(sequence, std::move(early));
  return keep ? UCS_INPROGRESS : UCS_OK;
}

void UcxEngine::DeliverEarly(UcxLink* link) {
  while (!link->ending) {
    auto it = link->early.find(link->next_in);
    if (it == link->early.end()) return;
    UcxEarly early = std::move(it->second);
    link->early.erase(it);
    ++link->next_in;
    void* data = early.descriptor ? early.descriptor : early.copy.data();
    const ucs_status_t status = Deliver(link, std::move(early.header), data,
                                        early.payload_bytes, early.rendezvous);
    if (early.descriptor != nullptr && status == UCS_OK) {
      ucp_am_data_release(link->worker->get(), early.descriptor);
    }
  }
}

// UCS_INPROGRESS when UCX took the descriptor over for a receive.
ucs_status_t UcxEngine::Deliver(UcxLink* link, std::string header, void* data,
                                size_t length, bool rendezvous) {
  called_back_ = true;
  if (header.empty()) {
    Welcomed(link);
    return UCS_OK;
  }
  const absl::Span<std::byte> place =
      handler_->OnHeader(link->id, BytesOf(header), length);
  if (!place.empty() && rendezvous) {
    return StartReceive(link, std::move(header), place, data) ? UCS_INPROGRESS
                                                              : UCS_OK;
  }
  if (!place.empty()) std::memcpy(place.data(), data, place.size());
  handler_->OnMessage(link->id, BytesOf(header), place);
  return UCS_OK;
}

bool UcxEngine::StartReceive(UcxLink* link, std::string header,
                             absl::Span<std::byte> place, void* descriptor) {
  UcxReceive* receive = &link->receives.emplace_back();
  receive->self = std::prev(link->receives.end());
  receive->engine = this;
  receive->link = link->id;
  receive->header = std::move(header);
  receive->place = place;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = OnReceiveDone;
  param.user_data = receive;
  void* request = ucp_am_recv_data_nbx(link->worker->get(), descriptor,
                                       place.data(), place.size(), &param);
  if (request != nullptr && !UCS_PTR_IS_ERR(request)) return true;
  ReceiveEnded(receive, UCS_PTR_STATUS(request));
  return request == nullptr;
}

void UcxEngine::OnReceiveDone(void* request, ucs_status_t status,
                              size_t /*length*/, void* argument) {
  ucp_request_free(request);
  auto* receive = static_cast<UcxReceive*>(argument);
  receive->engine->ReceiveEnded(receive, status);
}

void UcxEngine::ReceiveEnded(UcxReceive* receive, ucs_status_t status) {
  called_back_ = true;
  if (status != UCS_OK) {
    failed_.emplace_back(receive->link, UcxError("receive", status));
  } else if (handler_ != nullptr) {
    handler_->OnMessage(receive->link, BytesOf(receive->header),
                        receive->place);
  }
  Find(receive->link)->receives.erase(receive->self);
}

bool UcxEngine::ReportSent(TransportHandler* handler) {
  if (sent_.empty()) return false;
  for (const Sent& sent : std::exchange(sent_, {})) {
    handler->OnSent(sent.link, sent.send, sent.status);
  }
  return true;
}

bool UcxEngine::Progress(TransportHandler* handler) {
  handler_ = handler;
  called_back_ = false;
  called_back_ |= workers_->Progress();
  for (ucp_conn_request_h request : std::exchange(requests_, {})) {
    Accept(request);
  }
  for (const auto& [id, why] : std::exchange(failed_, {})) {
    if (UcxLink* link = Find(id); link != nullptr) End(link, why);
  }
  called_back_ |= ReportSent(handler);
  called_back_ |= RunClosing(handler);
  handler_ = nullptr;
  return called_back_;
}

void UcxEngine::Wait(Duration timeout) {
  if (!sent_.empty() || !failed_.empty() || !requests_.empty()) return;
  constexpr Duration kWhileClosing = std::chrono::milliseconds(1);
  workers_->Wait(closing_ > 0 ? std::min(timeout, kWhileClosing) : timeout);
}

}  // namespace baton::transfer
