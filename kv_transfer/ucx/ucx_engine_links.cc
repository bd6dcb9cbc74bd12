#include <utility>

#include "common/base/random_bytes.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "kv_transfer/ucx/ucx_address.h"
#include "kv_transfer/ucx/ucx_engine.h"

namespace baton::transfer {
namespace {

constexpr size_t kMaxLinks = 4096;
// How long BYE may take before the endpoint is closed over it.
constexpr Duration kFarewellTime = std::chrono::milliseconds(20);
constexpr Duration kShutdownTime = std::chrono::seconds(2);

// For what still happens while the engine is taken down.
class NobodyCares final : public TransportHandler {
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
  for (auto& [id, link] : links_) {
    End(&link, absl::CancelledError("the transport is gone"), true);
  }
  NobodyCares handler;
  const MonotonicTime give_up = MonotonicNow() + kShutdownTime;
  while (!links_.empty() && MonotonicNow() < give_up) Progress(&handler);
  worker_.reset();
}

UcxLink* UcxEngine::Add(uint64_t token, bool connector) {
  const LinkId id(next_link_++);
  UcxLink& link = links_[id];
  link.engine = this;
  link.id = id;
  link.token = token;
  link.connector = connector;
  by_token_[{token, connector}] = id;
  return &link;
}

UcxLink* UcxEngine::Find(LinkId id) {
  auto it = links_.find(id);
  return it == links_.end() ? nullptr : &it->second;
}

UcxLink* UcxEngine::Find(const UcxPrefix& prefix) {
  auto it = by_token_.find({prefix.token, prefix.from_connector == 0});
  return it == by_token_.end() ? nullptr : Find(it->second);
}

absl::StatusOr<LinkId> UcxEngine::Connect(std::string_view address) {
  BATON_ASSIGN_OR_RETURN(const std::string_view inside,
                         UnwrapUcxAddress(address));
  UcxLink* link = Add(RandomNonZero64(), /*connector=*/true);
  MakeEndpoint(link, inside);
  if (link->endpoint != nullptr) {
    const std::string& own = worker_->address();
    PostOwn(link, kHello,
            {reinterpret_cast<const std::byte*>(own.data()), own.size()});
  }
  return link->id;
}

void UcxEngine::MakeEndpoint(UcxLink* link, std::string_view worker_address) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address =
      reinterpret_cast<const ucp_address_t*>(worker_address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = OnEndpointFailed;
  params.err_handler.arg = link;
  const ucs_status_t status =
      ucp_ep_create(worker_->get(), &params, &link->endpoint);
  if (status == UCS_OK) return;
  link->endpoint = nullptr;
  failed_.emplace_back(link->id, UcxError("connect", status));
}

void UcxEngine::Accept(const Hello& hello) {
  const auto inside = UnwrapUcxAddress(hello.address);
  if (!inside.ok() || links_.size() >= kMaxLinks ||
      by_token_.contains({hello.token, false})) {
    return;
  }
  UcxLink* link = Add(hello.token, /*connector=*/false);
  link->welcomed = true;
  MakeEndpoint(link, *inside);
  if (link->endpoint != nullptr) PostOwn(link, kWelcome, {});
}

void UcxEngine::OnWelcome(UcxLink* link) {
  if (!link->connector || link->welcomed) return;
  link->welcomed = true;
  for (auto& send : std::exchange(link->waiting, {})) {
    Post(link, kData, std::move(send));
  }
}

void UcxEngine::Close(LinkId id) {
  UcxLink* link = Find(id);
  if (link == nullptr) return;
  End(link, absl::CancelledError("closed by force"), /*farewell=*/true);
}

void UcxEngine::OnEndpointFailed(void* argument, ucp_ep_h /*endpoint*/,
                                 ucs_status_t status) {
  auto* link = static_cast<UcxLink*>(argument);
  link->engine->failed_.emplace_back(link->id, UcxError("peer", status));
}

void UcxEngine::End(UcxLink* link, const absl::Status& why, bool farewell) {
  if (link->ending) return;
  link->ending = why;
  ++closing_;
  for (const auto& send : std::exchange(link->waiting, {})) {
    sent_.push_back({link->id, send->send, why});
  }
  for (const auto& [sequence, early] : std::exchange(link->early, {})) {
    if (early.descriptor != nullptr) {
      ucp_am_data_release(worker_->get(), early.descriptor);
    }
  }
  link->force_at = MonotonicNow();
  if (!farewell || link->endpoint == nullptr || !link->welcomed) return;
  link->force_at += kFarewellTime;
  link->farewell_pending = true;
  PostOwn(link, kBye, {});
}

void UcxEngine::ForceClose(UcxLink* link) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* request = ucp_ep_close_nbx(link->endpoint, &param);
  link->endpoint = nullptr;
  if (request == nullptr || UCS_PTR_IS_ERR(request)) {
    link->endpoint_closed = true;
  } else {
    link->close_request = request;
  }
}

// Whether nothing of the link is left in UCX.
bool UcxEngine::Closed(UcxLink* link) {
  if (link->endpoint != nullptr) {
    if (link->farewell_pending && MonotonicNow() < link->force_at) return false;
    ForceClose(link);
  }
  if (link->close_request != nullptr) {
    if (ucp_request_check_status(link->close_request) == UCS_INPROGRESS) {
      return false;
    }
    ucp_request_free(link->close_request);
    link->close_request = nullptr;
  }
  return link->sends == 0 && link->receives == 0;
}

bool UcxEngine::RunClosing(TransportHandler* handler) {
  if (closing_ == 0) return false;
  bool any = false;
  for (auto it = links_.begin(); it != links_.end();) {
    UcxLink& link = it->second;
    if (!link.ending || !Closed(&link)) {
      ++it;
      continue;
    }
    any = true;
    ReportSent(handler);
    const LinkId id = link.id;
    const absl::Status why = *link.ending;
    by_token_.erase({link.token, link.connector});
    it = links_.erase(it);
    --closing_;
    handler->OnClosed(id, why);
  }
  return any;
}

}  // namespace baton::transfer
