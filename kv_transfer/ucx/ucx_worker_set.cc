#include "kv_transfer/ucx/ucx_worker_set.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::transfer {
namespace {

// Each costs a dozen descriptors and some megabytes of shared memory.
constexpr size_t kMaxOwnWorkers = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<UcxWorkerSet>> UcxWorkerSet::Create(
    const UcxOptions& options, Prepare prepare) {
  std::unique_ptr<UcxWorkerSet> set(new UcxWorkerSet);
  set->prepare_ = std::move(prepare);
  BATON_RETURN_IF_ERROR(set->Start(options));
  return set;
}

absl::Status UcxWorkerSet::Start(const UcxOptions& options) {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_fd_ < 0 || wake_fd_ < 0 ||
      epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event) != 0) {
    return absl::UnavailableError("ucx: no descriptors for events");
  }
  BATON_ASSIGN_OR_RETURN(context_, UcxContext::Create(options));
  return Add().status();
}

UcxWorkerSet::~UcxWorkerSet() {
  members_.clear();
  context_.reset();
  if (wake_fd_ >= 0) close(wake_fd_);
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

Duration UcxWorkerSet::close_time() const {
  return context_->shared_queues() ? std::chrono::milliseconds(200)
                                   : std::chrono::milliseconds(2000);
}

absl::StatusOr<UcxWorker*> UcxWorkerSet::Add() {
  auto member = std::make_unique<Member>();
  BATON_ASSIGN_OR_RETURN(member->worker, UcxWorker::Create(*context_));
  BATON_RETURN_IF_ERROR(prepare_(member->worker.get()));
  epoll_event event{.events = EPOLLIN, .data = {.ptr = member.get()}};
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, member->worker->event_fd(), &event) !=
      0) {
    return absl::UnavailableError("ucx: cannot watch a worker");
  }
  members_.push_back(std::move(member));
  return members_.back()->worker.get();
}

absl::StatusOr<UcxWorker*> UcxWorkerSet::ForNewLink() {
  if (!context_->shared_queues()) {
    if (shared_ == nullptr) {
      BATON_ASSIGN_OR_RETURN(shared_, Add());
    }
    return shared_;
  }
  if (members_.size() > kMaxOwnWorkers) {
    return absl::ResourceExhaustedError(
        StrCat("ucx: all ", kMaxOwnWorkers, " links over shared memory exist"));
  }
  return Add();
}

void UcxWorkerSet::Leave(UcxWorker* worker) {
  if (worker != shared_) End(worker);
}

void UcxWorkerSet::End(UcxWorker* worker) {
  auto it = std::ranges::find_if(members_, [worker](const auto& member) {
    return member->worker.get() == worker;
  });
  BATON_CHECK(it != members_.end() && it != members_.begin());
  if (worker == shared_) shared_ = nullptr;
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, worker->event_fd(), nullptr);
  const std::unique_ptr<Member> ended = std::move(*it);
  members_.erase(it);
}

UcxWorkerSet::Member* UcxWorkerSet::Find(const UcxWorker* worker) {
  for (const auto& member : members_) {
    if (member->worker.get() == worker) return member.get();
  }
  return nullptr;
}

void UcxWorkerSet::Touch(UcxWorker* worker) {
  if (Member* member = Find(worker); member != nullptr) member->armed = false;
}

void UcxWorkerSet::RouseMembers() {
  epoll_event events[kMaxOwnWorkers + 1];
  const int count = epoll_wait(epoll_fd_, events, std::size(events), 0);
  for (int i = 0; i < count; ++i) {
    auto* member = static_cast<Member*>(events[i].data.ptr);
    if (member != nullptr) member->armed = false;
  }
}

bool UcxWorkerSet::Progress() {
  bool any = false;
  if (std::ranges::any_of(members_, [](const auto& m) { return m->armed; })) {
    RouseMembers();
  }
  // Callbacks may add members.
  for (size_t i = 0; i < members_.size(); ++i) {
    Member* member = members_[i].get();
    if (member->armed) continue;
    member->idle = !member->worker->Progress();
    any |= !member->idle;
  }
  return any;
}

void UcxWorkerSet::Wait(Duration timeout) {
  // A worker that has nothing to do and still cannot sleep waits for a peer:
  // for room in its queue, or for a place there to be filled.
  constexpr Duration kWhileRestless = std::chrono::microseconds(100);
  for (const auto& member : members_) {
    if (member->armed) continue;
    member->armed = member->worker->Arm();
    if (member->armed) continue;
    if (!member->idle) return;
    timeout = std::min(timeout, kWhileRestless);
  }
  if (timeout <= Duration::zero()) return;
  pollfd ready{epoll_fd_, POLLIN, 0};
  const auto seconds = std::chrono::floor<std::chrono::seconds>(timeout);
  const timespec limit{
      static_cast<time_t>(std::min<int64_t>(seconds.count(), 3600)),
      static_cast<long>((timeout - seconds).count())};
  ppoll(&ready, 1, &limit, nullptr);
  eventfd_t woken;
  eventfd_read(wake_fd_, &woken);
}

void UcxWorkerSet::Wake() { eventfd_write(wake_fd_, 1); }

}  // namespace baton::transfer
