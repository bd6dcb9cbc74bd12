#ifndef BATON_ROUTER_MEMBERSHIP_SESSION_STREAM_H_
#define BATON_ROUTER_MEMBERSHIP_SESSION_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "common/base/event_loop.h"
#include "common/rpc/status.h"
#include "router/membership/stream_group.h"

namespace baton::router {

// One life of a bidirectional session with a worker, from opening to its end.
// Events arrive one by one on the loop; the next one is read only when the
// last has been handled, so a slow loop slows the worker down instead of
// growing a queue. Commands are queued up to a limit. Functions are called on
// the loop only, as are the handlers, which are never called again once
// Abandon() or `on_end` has run.
template <class Command, class Event>
class SessionStream final
    : public grpc::ClientBidiReactor<Command, Event>,
      public std::enable_shared_from_this<SessionStream<Command, Event>> {
 public:
  struct Handlers {
    std::function<void(Event)> on_event;
    std::function<void(absl::Status)> on_end;  // never OK
  };
  // Starts the call on a stub, for instance
  // [stub](auto* context, auto* reactor) {
  //   stub->async()->Session(context, reactor); }
  using Starter = std::function<void(grpc::ClientContext*,
                                     grpc::ClientBidiReactor<Command, Event>*)>;

  static constexpr size_t kMaxQueuedBytes = 64 << 20;

  static std::shared_ptr<SessionStream> Open(const Starter& start,
                                             Handlers handlers, EventLoop* loop,
                                             StreamGroup* group) {
    std::shared_ptr<SessionStream> stream(
        new SessionStream(std::move(handlers), loop, group));
    stream->self_ = stream;
    group->Enter();
    start(&stream->context_, stream.get());
    stream->AddHold();
    stream->StartRead(&stream->incoming_);
    stream->StartCall();
    return stream;
  }

  // False when the queue is full: the session is of no use any more.
  bool Send(Command command) {
    std::lock_guard lock(mutex_);
    if (over_) return true;
    queued_bytes_ += command.ByteSizeLong();
    if (queued_bytes_ > kMaxQueuedBytes) return false;
    queue_.push_back(std::move(command));
    if (queue_.size() == 1) this->StartWrite(&queue_.front());
    return true;
  }

  // Ends the call; no handler is called any more.
  void Abandon() {
    handlers_ = {};
    context_.TryCancel();
    std::lock_guard lock(mutex_);
    over_ = true;
    DropHoldUnlessReading();
  }

  void OnReadDone(bool ok) override {
    std::lock_guard lock(mutex_);
    reading_ = false;
    if (!ok || over_) {
      over_ = true;
      DropHoldUnlessReading();
      return;
    }
    loop_->Post([self = this->shared_from_this()] { self->Deliver(); });
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    queued_bytes_ -= queue_.front().ByteSizeLong();
    queue_.pop_front();
    if (!ok) over_ = true;
    if (over_) {
      queue_.clear();
    } else if (!queue_.empty()) {
      this->StartWrite(&queue_.front());
    }
  }

  void OnDone(const grpc::Status& status) override {
    StreamGroup* const group = group_;
    loop_->Post([self = std::move(self_), status] { self->End(status); });
    group->Leave();
  }

 private:
  SessionStream(Handlers handlers, EventLoop* loop, StreamGroup* group)
      : handlers_(std::move(handlers)), loop_(loop), group_(group) {}

  void Deliver() {
    Event event = std::move(incoming_);
    incoming_ = Event();
    if (handlers_.on_event) {
      const auto on_event = handlers_.on_event;
      on_event(std::move(event));
    }
    std::lock_guard lock(mutex_);
    if (hold_dropped_) return;
    reading_ = true;
    this->StartRead(&incoming_);
  }

  void End(const grpc::Status& status) {
    if (!handlers_.on_end) return;
    const auto on_end = std::exchange(handlers_, {}).on_end;
    on_end(status.ok() ? absl::UnavailableError("the worker ended the session")
                       : FromGrpcStatus(status));
  }

  void DropHoldUnlessReading() {
    if (reading_ || hold_dropped_) return;
    hold_dropped_ = true;
    this->RemoveHold();
  }

  Handlers handlers_;  // loop only
  EventLoop* const loop_;
  StreamGroup* const group_;
  grpc::ClientContext context_;
  std::shared_ptr<SessionStream> self_;  // until OnDone

  std::mutex mutex_;
  Event incoming_;             // of gRPC while reading_, else of the loop
  std::deque<Command> queue_;  // mutex_; the front is being written
  size_t queued_bytes_ = 0;    // mutex_
  bool reading_ = true;        // mutex_
  bool over_ = false;          // mutex_: no new write
  bool hold_dropped_ = false;  // mutex_
};

}  // namespace baton::router

#endif  // BATON_ROUTER_MEMBERSHIP_SESSION_STREAM_H_
