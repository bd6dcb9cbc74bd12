#ifndef BATON_KV_TRANSFER_UCX_UCX_CONTEXT_H_
#define BATON_KV_TRANSFER_UCX_UCX_CONTEXT_H_

#include <ucp/api/ucp.h>

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kv_transfer/ucx/ucx_address.h"
#include "kv_transfer/ucx/ucx_transport.h"

namespace baton::transfer {

// UNAVAILABLE with UCX's words and what was being done.
absl::Status UcxError(std::string_view doing, ucs_status_t status);

// Whether a value of UCX_TLS may choose a transport whose senders write into a
// queue in the receiver's memory ("sysv", "posix", "xpmem" and their groups).
bool NamesSharedQueues(std::string_view transports);

// A UCX context configured for Baton; it outlives the workers made from it.
class UcxContext {
 public:
  static absl::StatusOr<std::unique_ptr<UcxContext>> Create(
      const UcxOptions& options);
  ~UcxContext();
  UcxContext(const UcxContext&) = delete;
  UcxContext& operator=(const UcxContext&) = delete;

  ucp_context_h get() const { return context_; }
  // The device to listen on, with port 0.
  const UcxSocketAddress& interface() const { return interface_; }
  // NamesSharedQueues of the transports in use.
  bool shared_queues() const { return shared_queues_; }

 private:
  UcxContext() = default;
  absl::Status Start(const UcxOptions& options);

  ucp_context_h context_ = nullptr;
  UcxSocketAddress interface_;
  bool shared_queues_ = false;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_UCX_UCX_CONTEXT_H_
