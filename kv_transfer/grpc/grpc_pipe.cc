#include "kv_transfer/grpc/grpc_pipe.h"

namespace baton::transfer {

void GrpcBell::Ring() {
  {
    std::lock_guard lock(mutex_);
    rung_ = true;
  }
  condition_.notify_one();
}

void GrpcBell::Wait(Duration timeout) {
  std::unique_lock lock(mutex_);
  condition_.wait_until(lock, MonotonicNow() + timeout,
                        [this] { return rung_; });
  rung_ = false;
}

bool GrpcPipe::HasRoom() const {
  std::lock_guard lock(mutex_);
  return !broken_ && outgoing_.size() < kPieces;
}

void GrpcPipe::Put(v1::LinkPiece piece) {
  std::lock_guard lock(mutex_);
  if (broken_) return;
  outgoing_.push_back(std::move(piece));
  if (std::exchange(writing_, true)) return;
  StartWriteOf(&outgoing_.front());
}

std::optional<v1::LinkPiece> GrpcPipe::Take() {
  std::lock_guard lock(mutex_);
  if (incoming_.empty()) return std::nullopt;
  v1::LinkPiece piece = std::move(incoming_.front());
  incoming_.pop_front();
  ReadIfRoom();
  return piece;
}

std::optional<absl::Status> GrpcPipe::Over() const {
  std::lock_guard lock(mutex_);
  if (!incoming_.empty()) return std::nullopt;
  return done_;
}

void GrpcPipe::Close() {
  std::lock_guard lock(mutex_);
  if (std::exchange(closed_, true)) return;
  incoming_.clear();
  if (done_) return;
  CancelCall();
  Break();
}

bool GrpcPipe::finished() const {
  std::lock_guard lock(mutex_);
  return done_.has_value();
}

void GrpcPipe::Begin() {
  std::lock_guard lock(mutex_);
  ReadIfRoom();
}

void GrpcPipe::ReadIfRoom() {
  if (reading_ || broken_ || incoming_.size() >= kPieces) return;
  reading_ = true;
  StartReadOf(&read_);
}

void GrpcPipe::Break() {
  if (std::exchange(broken_, true)) return;
  EndCall();
}

void GrpcPipe::ReadDone(bool ok) {
  std::lock_guard lock(mutex_);
  reading_ = false;
  if (!ok) {
    Break();
  } else if (!closed_) {
    incoming_.push_back(std::move(read_));
    read_ = v1::LinkPiece();
    ReadIfRoom();
  }
  bell_->Ring();
}

void GrpcPipe::WriteDone(bool ok) {
  std::lock_guard lock(mutex_);
  outgoing_.pop_front();
  writing_ = false;
  if (!ok) {
    Break();
  } else if (!broken_ && !outgoing_.empty()) {
    writing_ = true;
    StartWriteOf(&outgoing_.front());
  }
  bell_->Ring();
}

void GrpcPipe::Done(const absl::Status& status) {
  // The object may be gone once the lock is free.
  const std::shared_ptr<GrpcBell> bell = bell_;
  {
    std::lock_guard lock(mutex_);
    broken_ = true;
    done_ = status;
  }
  bell->Ring();
}

}  // namespace baton::transfer
