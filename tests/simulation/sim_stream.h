#ifndef BATON_TESTS_SIMULATION_SIM_STREAM_H_
#define BATON_TESTS_SIMULATION_SIM_STREAM_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "tests/simulation/virtual_time.h"

namespace baton::simulation {

struct StreamDelays {
  Duration min_delay = std::chrono::microseconds(20);
  Duration max_delay = std::chrono::milliseconds(3);
  // How long either end may take to notice that the stream broke.
  Duration max_notice = std::chrono::seconds(2);
};

// A session stream between a router and a worker: messages of one direction
// arrive in order, each after its own delay; the directions and other streams
// know nothing of each other's order. When it breaks, what was under way is
// lost from some message on, and each end notices by itself, one perhaps long
// after the other. An end that has closed hears nothing any more.
template <class Command, class Event>
class SimStream
    : public std::enable_shared_from_this<SimStream<Command, Event>> {
 public:
  template <class Message>
  struct End {
    std::function<void(Message)> on_message;
    std::function<void()> on_closed;
    bool open = true;
    MonotonicTime last_arrival{};
    MonotonicTime cut = kNever;  // what arrives later is lost
  };

  SimStream(EventQueue* events, Random random, StreamDelays delays)
      : events_(events), random_(random), delays_(delays) {}

  End<Event>& router() { return router_; }
  End<Command>& worker() { return worker_; }

  void SendToWorker(Command command) { Send(worker_, std::move(command)); }
  void SendToRouter(Event event) { Send(router_, std::move(event)); }

  // The connection is gone; both ends are told when they notice.
  void Break() {
    Cut(router_);
    Cut(worker_);
    NoticeLater(&SimStream::router_, delays_.max_notice);
    NoticeLater(&SimStream::worker_, delays_.max_notice);
  }
  // The router's end closes, or its process died: the worker is told.
  void CloseByRouter() {
    CloseSilently(router_);
    NoticeLater(&SimStream::worker_, delays_.max_delay);
  }
  void CloseByWorker() {
    CloseSilently(worker_);
    NoticeLater(&SimStream::router_, delays_.max_delay);
  }
  // The worker's end hears nothing any more; nobody is told.
  void CloseWorkerEnd() { CloseSilently(worker_); }
  void CloseRouterEnd() { CloseSilently(router_); }
  bool open() const { return router_.open && worker_.open; }

 private:
  template <class Message>
  void Send(End<Message>& to, Message message) {
    to.last_arrival = std::max(
        to.last_arrival + Duration(1),
        events_->now() + random_.Between(delays_.min_delay, delays_.max_delay));
    if (!to.open || to.last_arrival >= to.cut) return;
    events_->At(to.last_arrival, [self = this->shared_from_this(), &to,
                                  message = std::move(message)]() mutable {
      if (to.open && self->events_->now() < to.cut) {
        auto receive = to.on_message;  // which may close this end
        receive(std::move(message));
      }
    });
  }

  template <class Message>
  void Cut(End<Message>& end) {
    end.cut =
        std::min(end.cut, events_->now() +
                              random_.Between(Duration(0), delays_.max_delay));
  }

  template <class Message>
  void CloseSilently(End<Message>& end) {
    end.open = false;
    end.on_message = nullptr;
    end.on_closed = nullptr;
  }

  template <class Message>
  void NoticeLater(End<Message> SimStream::* end, Duration at_most) {
    events_->After(random_.Between(delays_.min_delay, at_most),
                   [self = this->shared_from_this(), end] {
                     End<Message>& noticing = (*self).*end;
                     if (!noticing.open) return;
                     auto closed = std::move(noticing.on_closed);
                     self->CloseSilently(noticing);
                     closed();
                   });
  }

  EventQueue* events_;
  Random random_;
  StreamDelays delays_;
  End<Event> router_;
  End<Command> worker_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_SIM_STREAM_H_
