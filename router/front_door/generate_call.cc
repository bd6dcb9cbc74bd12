#include "router/front_door/generate_call.h"

#include <utility>

#include "common/base/strings.h"
#include "common/rpc/status.h"
#include "common/telemetry/log.h"

namespace baton::router {
namespace {

std::string DescribeStatus(const absl::Status& status) {
  if (status.ok()) return "OK";
  return StrCat(absl::StatusCodeToString(status.code()), ": ",
                ToStd(status.message()));
}

}  // namespace

std::shared_ptr<GenerateCall> GenerateCall::Create(
    grpc::CallbackServerContext* context, RouterDriver* driver,
    std::string label, std::string traceparent) {
  std::shared_ptr<GenerateCall> call(new GenerateCall(
      context, driver, std::move(label), std::move(traceparent)));
  call->self_ = call;
  return call;
}

GenerateCall::GenerateCall(grpc::CallbackServerContext* context,
                           RouterDriver* driver, std::string label,
                           std::string traceparent)
    : context_(context),
      driver_(driver),
      label_(std::move(label)),
      traceparent_(std::move(traceparent)),
      id_(driver->NewRequestId()) {
  driver_->CallOpened();
}

void GenerateCall::Refuse(const absl::Status& status) {
  std::lock_guard lock(mutex_);
  ended_ = true;
  driver_->CountRefused(status.code());
  FinishWith(status);
}

void GenerateCall::Run(ClientRequest request) {
  request.id = id_;
  request.label = label_;
  request.received = received_;
  StartSendInitialMetadata();
  driver_->Submit(std::move(request), shared_from_this());
  std::lock_guard lock(mutex_);
  if (gone_) driver_->Cancel(id_);
}

void GenerateCall::OnEvent(v1::GenerateEvent event) {
  std::lock_guard lock(mutex_);
  tokens_ += event.token_ids_size();
  if (gone_ || too_slow_) return;
  queued_bytes_ += event.ByteSizeLong();
  queue_.push_back(std::move(event));
  if (queue_.size() == 1) {
    StartWrite(&queue_.front());
  } else if (queued_bytes_ > kMaxQueuedBytes) {
    too_slow_ = true;
    driver_->Cancel(id_);
  }
}

void GenerateCall::OnFinish(const absl::Status& status) {
  std::lock_guard lock(mutex_);
  ended_ = true;
  status_ = too_slow_ ? absl::ResourceExhaustedError(
                            StrCat("client: reads too slowly, ", queued_bytes_,
                                   " bytes are waiting"))
                      : status;
  if (queue_.empty()) {
    FinishWith(status_);
    return;
  }
  if (too_slow_) queue_.resize(1);
  driver_->RunAfter(kEndGrace, [weak = weak_from_this()] {
    const std::shared_ptr<GenerateCall> self = weak.lock();
    if (self == nullptr) return;
    std::lock_guard again(self->mutex_);
    if (!self->done_) self->context_->TryCancel();
  });
}

void GenerateCall::OnCancel() {
  std::lock_guard lock(mutex_);
  gone_ = true;
  if (!ended_) driver_->Cancel(id_);
}

void GenerateCall::OnWriteDone(bool ok) {
  std::lock_guard lock(mutex_);
  queued_bytes_ -= queue_.front().ByteSizeLong();
  queue_.pop_front();
  if (!ok) gone_ = true;
  if (gone_) queue_.clear();
  if (!queue_.empty()) {
    StartWrite(&queue_.front());
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
  }
  driver_->CallClosed();
}

void GenerateCall::FinishWith(const absl::Status& status) {
  LogEnd(status);
  Finish(ToGrpcStatus(status));
}

void GenerateCall::LogEnd(const absl::Status& status) const {
  log::Info("request {} ({}){}{}: {} after {:.1f} ms, {} tokens", id_.value(),
            label_, traceparent_.empty() ? "" : " trace ", traceparent_,
            DescribeStatus(status), Milliseconds(MonotonicNow() - received_),
            tokens_);
}

}  // namespace baton::router
