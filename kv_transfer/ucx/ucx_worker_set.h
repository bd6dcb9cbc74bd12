#ifndef BATON_KV_TRANSFER_UCX_UCX_WORKER_SET_H_
#define BATON_KV_TRANSFER_UCX_UCX_WORKER_SET_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/monotonic_time.h"
#include "kv_transfer/ucx/ucx_worker.h"

namespace baton::transfer {

// The workers of a transport: one that only listens, and those that carry
// links. Over shared memory every link has a worker of its own, because a peer
// that dies between taking a place in a receive queue and filling it stops that
// queue for good; otherwise all links share one.
//
// A worker that UCX cannot clear up is taken down whole. Single-threaded,
// except Wake().
class UcxWorkerSet {
 public:
  using Prepare = std::function<absl::Status(UcxWorker*)>;

  // `prepare` runs for every worker before it carries a link.
  static absl::StatusOr<std::unique_ptr<UcxWorkerSet>> Create(
      const UcxOptions& options, Prepare prepare);
  ~UcxWorkerSet();
  UcxWorkerSet(const UcxWorkerSet&) = delete;
  UcxWorkerSet& operator=(const UcxWorkerSet&) = delete;

  UcxWorker* front() const { return members_.front()->worker.get(); }
  const UcxContext& context() const { return *context_; }
  // How long UCX may take to close a link before its worker goes.
  Duration close_time() const;

  // The worker for one more link. RESOURCE_EXHAUSTED at the limit.
  absl::StatusOr<UcxWorker*> ForNewLink();
  // A link of it is over. Ends a worker that was only for it.
  void Leave(UcxWorker* worker);
  // Ends a worker at once, with what it carries.
  void End(UcxWorker* worker);
  // Something was begun on the worker, which may have slept.
  void Touch(UcxWorker* worker);

  // Runs the callbacks of workers that have something to do; true if there was
  // any.
  bool Progress();
  // Sleeps until a worker has work, Wake was called, or `timeout`.
  void Wait(Duration timeout);
  void Wake();

 private:
  struct Member {
    std::unique_ptr<UcxWorker> worker;
    bool armed = false;  // sleeps until its event descriptor is readable
    bool idle = false;   // had nothing to do the last time
  };

  UcxWorkerSet() = default;
  absl::Status Start(const UcxOptions& options);
  absl::StatusOr<UcxWorker*> Add();
  Member* Find(const UcxWorker* worker);
  // Members whose descriptors are readable are no longer armed.
  void RouseMembers();

  std::unique_ptr<UcxContext> context_;
  Prepare prepare_;
  std::vector<std::unique_ptr<Member>> members_;  // the first one listens
  UcxWorker* shared_ = nullptr;  // carries all links, unless each has its own
  int epoll_fd_ = -1;
  int wake_fd_ = -1;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_UCX_UCX_WORKER_SET_H_
