#include "router/front_door/generate_call.h"

#include <algorithm>
#include <utility>

#include "common/base/strings.h"
#include "common/config/config_values.h"
#include "common/rpc/status.h"
#include "router/front_door/wire_message.h"

namespace baton::router {
std::shared_ptr<GenerateCall> GenerateCall::Create(
    grpc::CallbackServerContext* context, Surroundings around,
    StreamLimits limits, std::string traceparent) {
  std::shared_ptr<GenerateCall> call(
      new GenerateCall(context, around, limits, std::move(traceparent)));
  call->self_ = call;
  return call;
}

GenerateCall::GenerateCall(grpc::CallbackServerContext* context,
                           Surroundings around, StreamLimits limits,
                           std::string traceparent)
    : context_(context),
      driver_(around.driver),
      log_(around.log),
      limits_(limits),
      traceparent_(std::move(traceparent)) {
  driver_->CallOpened(CallKind::kAnswer);
}

void GenerateCall::Run(ClientRequest request, std::shared_ptr<void> slot) {
  slot_ = std::move(slot);
  id_ = request.id;
  label_ = request.label;
  received_ = request.received;
  deadline_ = request.deadline;
  StartSendInitialMetadata();
  driver_->Submit(std::move(request), shared_from_this());
  std::lock_guard lock(mutex_);
  if (gone_) driver_->Cancel(id_);
}

void GenerateCall::OnEvent(v1::GenerateEvent event, bool held_back) {
  std::lock_guard lock(mutex_);
  tokens_ = event.has_usage() ? event.usage().completion_tokens()
                              : tokens_ + event.token_ids_size();
  if (gone_ || !too_slow_.empty()) return;
  if (held_back) {
    held_back_.push_back(std::move(event));
    QueueHeldBack();
    return;
  }
  Queue(event);
  if (queue_.size() > 1 && unread_bytes_ > limits_.max_unread_bytes) {
    CutOff(StrCat(unread_bytes_, " bytes are waiting, allowed ",
                  limits_.max_unread_bytes));
  }
}

void GenerateCall::OnFinish(const absl::Status& status) {
  std::lock_guard lock(mutex_);
  ended_ = true;
  take_by_ = std::max(deadline_, MonotonicNow()) + limits_.slow_client_timeout;
  if (too_slow_.empty()) status_ = status;
  if (queue_.empty()) {
    FinishWith(status_);
  } else if (!too_slow_.empty()) {
    DropQueued(1);
    CancelAfter(limits_.cut_off_grace);
  } else if (held_back_.empty()) {
    LimitEnd();
  }
}

void GenerateCall::OnCancel() {
  std::lock_guard lock(mutex_);
  gone_ = true;
  if (!ended_) driver_->Cancel(id_);
}

void GenerateCall::OnWriteDone(bool ok) {
  std::lock_guard lock(mutex_);
  if (!ok) gone_ = true;
  const size_t bytes = queue_.front().Length();
  queue_.pop_front();
  unread_bytes_ -= bytes;
  driver_->metrics()->AddUnreadBytes(-static_cast<double>(bytes));
  const bool more_held_back = !held_back_.empty();
  if (gone_) DropQueued(0);
  if (!queue_.empty()) WriteFront();
  QueueHeldBack();
  if (!queue_.empty()) {
    if (ended_ && more_held_back && held_back_.empty()) {
      LimitEnd();
    }
  } else if (ended_) {
    FinishWith(status_);
  } else if (!ok) {
    driver_->Cancel(id_);
  }
}

void GenerateCall::OnDone() {
  const std::shared_ptr<GenerateCall> self = std::move(self_);
  {
    std::lock_guard lock(mutex_);
    done_ = true;
    DropQueued(0);
    slot_.reset();
  }
  driver_->CallClosed(CallKind::kAnswer);
}

void GenerateCall::Queue(const v1::GenerateEvent& event) {
  grpc::ByteBuffer written = WriteMessage(event);
  const size_t bytes = written.Length();
  unread_bytes_ += bytes;
  driver_->metrics()->AddUnreadBytes(static_cast<double>(bytes));
  queue_.push_back(std::move(written));
  if (queue_.size() == 1) WriteFront();
}

void GenerateCall::QueueHeldBack() {
  while (!held_back_.empty()) {
    const v1::GenerateEvent& event = held_back_.front();
    if (!queue_.empty() &&
        unread_bytes_ + event.ByteSizeLong() > limits_.max_unread_bytes) {
      return;
    }
    Queue(event);
    held_back_.pop_front();
  }
}

void GenerateCall::LimitEnd() {
  CancelAfter(std::min(limits_.slow_client_timeout, take_by_ - MonotonicNow()));
}

void GenerateCall::CancelAfter(Duration grace) {
  driver_->RunAfter(grace, [weak = weak_from_this()] {
    const std::shared_ptr<GenerateCall> self = weak.lock();
    if (self == nullptr) return;
    std::lock_guard again(self->mutex_);
    if (self->done_) return;
    if (self->too_slow_.empty()) self->driver_->metrics()->SlowClient();
    self->context_->TryCancel();
  });
}

void GenerateCall::WriteFront() {
  write_started_ = MonotonicNow();
  WatchWrites();
  StartWrite(&queue_.front());
}

void GenerateCall::DropQueued(size_t keep) {
  held_back_.clear();
  while (queue_.size() > keep) {
    const size_t bytes = queue_.back().Length();
    queue_.pop_back();
    unread_bytes_ -= bytes;
    driver_->metrics()->AddUnreadBytes(-static_cast<double>(bytes));
  }
}

void GenerateCall::WatchWrites() {
  if (std::exchange(watching_, true)) return;
  const MonotonicTime due =
      std::min(write_started_ + limits_.slow_client_timeout, take_by_);
  driver_->RunAfter(due - MonotonicNow(), [weak = weak_from_this()] {
    const std::shared_ptr<GenerateCall> self = weak.lock();
    if (self == nullptr) return;
    std::lock_guard lock(self->mutex_);
    self->watching_ = false;
    const bool at_end = self->ended_ && self->held_back_.empty();
    if (at_end || self->gone_ || self->queue_.empty()) return;
    const MonotonicTime now = MonotonicNow();
    const Duration most = self->limits_.slow_client_timeout;
    if (now >= self->take_by_) {
      self->CutOff(StrCat("has not taken all by the deadline and ",
                          FormatDuration(most)));
    } else if (now - self->write_started_ >= most) {
      self->CutOff(StrCat("took nothing for ", FormatDuration(most)));
    } else {
      self->WatchWrites();
    }
  });
}

void GenerateCall::CutOff(std::string why) {
  if (!too_slow_.empty()) return;
  too_slow_ = std::move(why);
  driver_->metrics()->SlowClient();
  status_ = absl::ResourceExhaustedError(
      StrCat("client: reads too slowly (", too_slow_, ")"));
  if (ended_) {
    DropQueued(1);
    CancelAfter(limits_.cut_off_grace);
  } else {
    driver_->Cancel(id_, status_);
  }
}

void GenerateCall::FinishWith(const absl::Status& status) {
  log_->Ended({id_, label_, traceparent_, status, received_, tokens_});
  Finish(ToGrpcStatus(status));
}

}  // namespace baton::router
