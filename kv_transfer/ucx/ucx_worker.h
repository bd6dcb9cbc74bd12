#ifndef BATON_KV_TRANSFER_UCX_UCX_WORKER_H_
#define BATON_KV_TRANSFER_UCX_UCX_WORKER_H_

#include <ucp/api/ucp.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kv_transfer/ucx/ucx_context.h"

namespace baton::transfer {

// One UCX worker: receive queues, and the endpoints made on it. Not
// thread-safe.
class UcxWorker {
 public:
  // `context` outlives the worker.
  static absl::StatusOr<std::unique_ptr<UcxWorker>> Create(
      const UcxContext& context);
  // Takes all its endpoints with it: UCX may still call back for some of
  // their messages from inside, and touches nothing of them afterwards.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h get() const { return worker_; }
  ucp_listener_h listener() const { return listener_; }

  // Runs `callback` for active messages `id`.
  absl::Status OnActiveMessage(unsigned id, ucp_am_recv_callback_t callback,
                               void* argument);
  // Runs `callback` for peers that connect at a free port of `interface`; the
  // address at which they do.
  absl::StatusOr<std::string> Listen(const UcxSocketAddress& interface,
                                     ucp_listener_conn_callback_t callback,
                                     void* argument);

  // True if there was anything to do.
  bool Progress();
  // Readable when Progress has something to do, once Arm was true; Arm is
  // false when there may be something already.
  int event_fd() const { return event_fd_; }
  bool Arm() { return ucp_worker_arm(worker_) == UCS_OK; }

 private:
  UcxWorker() = default;

  ucp_worker_h worker_ = nullptr;
  ucp_listener_h listener_ = nullptr;
  int event_fd_ = -1;  // UCX's own
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_UCX_UCX_WORKER_H_
