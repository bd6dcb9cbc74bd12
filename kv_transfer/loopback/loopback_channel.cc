#include "kv_transfer/loopback/loopback_channel.h"

#include <utility>

namespace baton::transfer {
namespace {

// Shares nothing with the original, which another thread may let go of.
absl::Status Copy(const absl::Status& status) {
  return absl::Status(status.code(), status.message());
}

}  // namespace

void LoopbackBell::Ring() {
  {
    std::lock_guard lock(mutex_);
    rung_ = true;
  }
  condition_.notify_one();
}

void LoopbackBell::Wait(Duration timeout) {
  std::unique_lock lock(mutex_);
  condition_.wait_until(lock, MonotonicNow() + timeout,
                        [this] { return rung_; });
  rung_ = false;
}

LoopbackChannel::LoopbackChannel(std::shared_ptr<LoopbackBell> connector,
                                 std::shared_ptr<LoopbackBell> acceptor) {
  ends_[0].bell = std::move(connector);
  ends_[1].bell = std::move(acceptor);
}

bool LoopbackChannel::Put(int end, Parcel parcel) {
  std::lock_guard lock(mutex_);
  if (closed_) return false;
  End& to = ends_[1 - end];
  to.inbox.push_back(std::move(parcel));
  to.bell->Ring();
  return true;
}

std::optional<LoopbackChannel::Parcel> LoopbackChannel::Take(int end) {
  std::lock_guard lock(mutex_);
  End& me = ends_[end];
  if (me.inbox.empty()) return std::nullopt;
  Parcel parcel = std::move(me.inbox.front());
  me.inbox.pop_front();
  me.copying = true;
  return parcel;
}

void LoopbackChannel::Return(int end, SendId send) {
  std::lock_guard lock(mutex_);
  ends_[end].copying = false;
  ends_[1 - end].receipts.push_back({send, absl::OkStatus()});
  ends_[1 - end].bell->Ring();
}

std::vector<LoopbackChannel::Receipt> LoopbackChannel::TakeReceipts(int end) {
  std::lock_guard lock(mutex_);
  return std::exchange(ends_[end].receipts, {});
}

void LoopbackChannel::Close(const absl::Status& why) {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  closed_ = Copy(why);
  for (int end = 0; end < 2; ++end) {
    for (const Parcel& parcel : ends_[end].inbox) {
      ends_[1 - end].receipts.push_back({parcel.send, Copy(why)});
    }
    ends_[end].inbox.clear();
  }
  for (End& end : ends_) end.bell->Ring();
}

std::optional<absl::Status> LoopbackChannel::TakeClosed(int end) {
  std::lock_guard lock(mutex_);
  End& me = ends_[end];
  if (!closed_ || me.told_closed || !me.receipts.empty() ||
      ends_[1 - end].copying) {
    return std::nullopt;
  }
  me.told_closed = true;
  return Copy(*closed_);
}

}  // namespace baton::transfer
