#include "kv_transfer/ucx/ucx_worker.h"

#include "common/base/strings.h"

namespace baton::transfer {
namespace {

constexpr int kProgressRounds = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<UcxWorker>> UcxWorker::Create(
    const UcxContext& context) {
  std::unique_ptr<UcxWorker> worker(new UcxWorker);
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status =
      ucp_worker_create(context.get(), &params, &worker->worker_);
  if (status != UCS_OK) return UcxError("create worker", status);
  status = ucp_worker_get_efd(worker->worker_, &worker->event_fd_);
  if (status != UCS_OK) return UcxError("get event descriptor", status);
  return worker;
}

UcxWorker::~UcxWorker() {
  if (listener_ != nullptr) ucp_listener_destroy(listener_);
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
}

absl::Status UcxWorker::OnActiveMessage(unsigned id,
                                        ucp_am_recv_callback_t callback,
                                        void* argument) {
  ucp_am_handler_param_t param{};
  param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                     UCP_AM_HANDLER_PARAM_FIELD_CB |
                     UCP_AM_HANDLER_PARAM_FIELD_ARG;
  param.id = id;
  param.cb = callback;
  param.arg = argument;
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_, &param);
  if (status != UCS_OK) return UcxError("set message handler", status);
  return absl::OkStatus();
}

absl::StatusOr<std::string> UcxWorker::Listen(
    const UcxSocketAddress& interface, ucp_listener_conn_callback_t callback,
    void* argument) {
  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
                      UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = interface.get();
  params.sockaddr.addrlen = interface.length;
  params.conn_handler.cb = callback;
  params.conn_handler.arg = argument;
  ucs_status_t status = ucp_listener_create(worker_, &params, &listener_);
  if (status != UCS_OK) {
    return UcxError(StrCat("listen at ", FormatUcxAddress(interface.get())),
                    status);
  }
  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  status = ucp_listener_query(listener_, &attributes);
  if (status != UCS_OK) return UcxError("get listening port", status);
  return FormatUcxAddress(
      reinterpret_cast<const sockaddr*>(&attributes.sockaddr));
}

bool UcxWorker::Progress() {
  bool any = false;
  for (int i = 0; i < kProgressRounds; ++i) {
    if (ucp_worker_progress(worker_) == 0) break;
    any = true;
  }
  return any;
}

}  // namespace baton::transfer
