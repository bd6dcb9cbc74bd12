#include <utility>

#include "common/base/status_macros.h"
#include "kv_transfer/ucx/ucx_address.h"
#include "kv_transfer/ucx/ucx_engine.h"

namespace baton::transfer {
namespace {

constexpr size_t kMaxLinks = 4096;
constexpr Duration kShutdownTime = std::chrono::seconds(2);

// For what still happens while the engine is taken down.
class DeafHandler final : public TransportHandler {
 public:
  absl::Span<std::byte> OnHeader(LinkId, absl::Span<const std::byte>,
                                 size_t) override {
    return {};
  }
  void OnMessage(LinkId, absl::Span<const std::byte>,
                 absl::Span<const std::byte>) override {}
  void OnSent(LinkId, SendId, const absl::Status&) override {}
  void OnClosed(LinkId, const absl::Status&) override {}
};

}  // namespace

UcxEngine::~UcxEngine() {
  if (workers_ == nullptr) return;
  for (ucp_conn_request_h request : std::exchange(requests_, {})) {
    ucp_listener_reject(workers_->front()->listener(), request);
  }
  for (auto& [id, link] : links_) {
    End(&link, absl::CancelledError("the transport is gone"));
  }
  DeafHandler handler;
  const MonotonicTime give_up = MonotonicNow() + kShutdownTime;
  while (!links_.empty() && MonotonicNow() < give_up) Progress(&handler);
  workers_.reset();
}

UcxLink* UcxEngine::Add(UcxWorker* worker) {
  const LinkId id(next_link_++);
  UcxLink& link = links_[id];
  link.engine = this;
  link.id = id;
  link.worker = worker;
  return &link;
}

UcxLink* UcxEngine::Find(LinkId id) {
  auto it = links_.find(id);
  return it == links_.end() ? nullptr : &it->second;
}

UcxLink* UcxEngine::Find(ucp_ep_h endpoint) {
  auto it = by_endpoint_.find(endpoint);
  return it == by_endpoint_.end() ? nullptr : Find(it->second);
}

absl::StatusOr<LinkId> UcxEngine::Connect(std::string_view address) {
  BATON_ASSIGN_OR_RETURN(const UcxSocketAddress peer, ParseUcxAddress(address));
  BATON_ASSIGN_OR_RETURN(UcxWorker* const worker, workers_->ForNewLink());
  UcxLink* link = Add(worker);
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = peer.get();
  params.sockaddr.addrlen = peer.length;
  MakeEndpoint(link, &params);
  return link->id;
}

void UcxEngine::OnConnectionRequest(ucp_conn_request_h request,
                                    void* argument) {
  static_cast<UcxEngine*>(argument)->requests_.push_back(request);
}

void UcxEngine::Accept(ucp_conn_request_h request) {
  const absl::StatusOr<UcxWorker*> worker =
      links_.size() < kMaxLinks
          ? workers_->ForNewLink()
          : absl::ResourceExhaustedError("ucx: too many links");
  if (!worker.ok()) {
    ucp_listener_reject(workers_->front()->listener(), request);
    return;
  }
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = request;
  UcxLink* link = Add(*worker);
  MakeEndpoint(link, &params);
  if (link->endpoint == nullptr) return;
  link->welcomed = true;
  Post(link, MakeSend(link, SendId(), {}, {}));
}

void UcxEngine::MakeEndpoint(UcxLink* link, ucp_ep_params_t* params) {
  params->field_mask |=
      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params->err_handler.cb = OnEndpointFailed;
  params->err_handler.arg = link;
  const ucs_status_t status =
      ucp_ep_create(link->worker->get(), params, &link->endpoint);
  workers_->Touch(link->worker);
  if (status == UCS_OK) {
    by_endpoint_[link->endpoint] = link->id;
  } else {
    link->endpoint = nullptr;
    End(link, UcxError("connect", status));
  }
}

void UcxEngine::OnEndpointFailed(void* argument, ucp_ep_h /*endpoint*/,
                                 ucs_status_t status) {
  auto* link = static_cast<UcxLink*>(argument);
  link->engine->failed_.emplace_back(link->id, UcxError("peer", status));
}

void UcxEngine::Close(LinkId id) {
  UcxLink* link = Find(id);
  if (link != nullptr) End(link, absl::CancelledError("closed by force"));
}

void UcxEngine::End(UcxLink* link, const absl::Status& why) {
  if (link->ending) return;
  link->ending = why;
  link->close_by = MonotonicNow() + workers_->close_time();
  ++closing_;
  for (const UcxSend& send : std::exchange(link->waiting, {})) {
    sent_.push_back({link->id, send.send, why});
  }
  for (const auto& [sequence, early] : std::exchange(link->early, {})) {
    if (early.descriptor != nullptr) {
      ucp_am_data_release(link->worker->get(), early.descriptor);
    }
  }
}

// Every link of the worker is over, whatever UCX has to say.
void UcxEngine::EndWorker(UcxWorker* worker) {
  for (auto& [id, link] : links_) {
    if (link.worker != worker) continue;
    End(&link, absl::UnavailableError("ucx: another link could not be closed"));
    by_endpoint_.erase(link.endpoint);
    link.endpoint = nullptr;
    link.close_request = nullptr;
  }
  workers_->End(worker);
  for (auto& [id, link] : links_) {
    if (link.worker != worker) continue;
    link.worker = nullptr;
    for (const UcxSend& send : std::exchange(link.sends, {})) {
      if (send.send == SendId()) continue;
      sent_.push_back({id, send.send, *link.ending});
    }
    link.receives.clear();
  }
}

// Whether nothing of the link is left in UCX.
bool UcxEngine::Closed(UcxLink* link) {
  if (link->worker != nullptr) workers_->Touch(link->worker);
  if (link->endpoint != nullptr) {
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* request = ucp_ep_close_nbx(link->endpoint, &param);
    by_endpoint_.erase(link->endpoint);
    link->endpoint = nullptr;
    if (!UCS_PTR_IS_ERR(request)) link->close_request = request;
  }
  if (link->close_request != nullptr) {
    if (ucp_request_check_status(link->close_request) == UCS_INPROGRESS) {
      return false;
    }
    ucp_request_free(link->close_request);
    link->close_request = nullptr;
  }
  return link->sends.empty() && link->receives.empty();
}

bool UcxEngine::RunClosing(TransportHandler* handler) {
  if (closing_ == 0) return false;
  bool any = false;
  const MonotonicTime now = MonotonicNow();
  for (auto it = links_.begin(); it != links_.end();) {
    UcxLink& link = it->second;
    if (!link.ending) {
      ++it;
      continue;
    }
    if (!Closed(&link)) {
      if (now < link.close_by) {
        ++it;
        continue;
      }
      EndWorker(link.worker);
    }
    any = true;
    ReportSent(handler);
    const LinkId id = link.id;
    const absl::Status why = *link.ending;
    if (link.worker != nullptr) workers_->Leave(link.worker);
    it = links_.erase(it);
    --closing_;
    handler->OnClosed(id, why);
  }
  return any;
}

}  // namespace baton::transfer
