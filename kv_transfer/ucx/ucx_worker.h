#ifndef BATON_KV_TRANSFER_UCX_UCX_WORKER_H_
#define BATON_KV_TRANSFER_UCX_UCX_WORKER_H_

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kv_transfer/ucx/ucx_address.h"
#include "kv_transfer/ucx/ucx_transport.h"

namespace baton::transfer {

// UNAVAILABLE with UCX's words and what was being done.
absl::Status UcxError(std::string_view doing, ucs_status_t status);

// A UCX context with one worker, configured for Baton, and what wakes a thread
// that waits for it. Not thread-safe but for Wake().
class UcxWorker {
 public:
  static absl::StatusOr<std::unique_ptr<UcxWorker>> Create(
      const UcxOptions& options);
  // Every endpoint is closed before.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_worker_h get() const { return worker_; }
  ucp_listener_h listener() const { return listener_; }

  // Runs `callback` for active messages `id`.
  absl::Status OnActiveMessage(unsigned id, ucp_am_recv_callback_t callback,
                               void* argument);
  // Runs `callback` for peers that connect; the address at which they do.
  absl::StatusOr<std::string> Listen(ucp_listener_conn_callback_t callback,
                                     void* argument);

  // Sleeps until UCX has work, Wake was called, or `timeout`.
  void Wait(Duration timeout);
  void Wake();

 private:
  UcxWorker() = default;
  absl::Status Start(const UcxOptions& options);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_listener_h listener_ = nullptr;
  UcxSocketAddress interface_;
  int event_fd_ = -1;  // UCX's own
  int wake_fd_ = -1;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_UCX_UCX_WORKER_H_
