#ifndef BATON_TESTS_SIMULATION_SIM_STREAM_H_
#define BATON_TESTS_SIMULATION_SIM_STREAM_H_

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/simulation/partitions.h"
#include "tests/simulation/virtual_time.h"

namespace baton::simulation {

struct StreamDelays {
  Duration min_delay = std::chrono::microseconds(20);
  Duration max_delay = std::chrono::milliseconds(3);
  // How long either end may take to notice that the stream broke.
  Duration max_notice = std::chrono::seconds(2);
};

// A session stream between a router and a worker: messages of one direction
// arrive in order, each after its own delay or when a partition ends; the
// directions and other streams know nothing of each other's order. When it
// breaks, what was under way is lost from some message on, and each end notices
// by itself, one perhaps long after the other. An end that has closed hears
// nothing any more.
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
    std::deque<Message> under_way;
    std::string process;
  };

  // `events` and `partitions` outlive the stream.
  SimStream(EventQueue* events, const Partitions* partitions, Random random,
            StreamDelays delays, std::string router, std::string worker)
      : events_(events),
        partitions_(partitions),
        random_(random),
        delays_(delays) {
    router_.process = std::move(router);
    worker_.process = std::move(worker);
  }

  End<Event>& router() { return router_; }
  End<Command>& worker() { return worker_; }

  void SendToWorker(Command command) { Send(worker_, std::move(command)); }
  void SendToRouter(Event event) { Send(router_, std::move(event)); }

  // The connection is gone; both ends are told when they notice.
  void Break() {
    Cut(router_);
    Cut(worker_);
    NoticeLater(&SimStream::router_, delays_.max_notice, false);
    NoticeLater(&SimStream::worker_, delays_.max_notice, false);
  }
  // The router's end closes, or its process died: the worker is told.
  void CloseByRouter() {
    CloseSilently(router_);
    NoticeLater(&SimStream::worker_, delays_.max_delay, true);
  }
  void CloseByWorker() {
    CloseSilently(worker_);
    NoticeLater(&SimStream::router_, delays_.max_delay, true);
  }
  // The worker's end hears nothing any more; nobody is told.
  void CloseWorkerEnd() { CloseSilently(worker_); }
  void CloseRouterEnd() { CloseSilently(router_); }
  bool open() const { return router_.open && worker_.open; }

 private:
  template <class Message>
  void Send(End<Message>& to, Message message) {
    to.last_arrival =
        std::max(to.last_arrival + Duration(1), events_->now() + Delay());
    if (!to.open || to.last_arrival >= to.cut) return;
    to.under_way.push_back(std::move(message));
    ArriveAt(to.last_arrival, &to);
  }

  // The oldest message under way arrives then, or when it can.
  template <class Message>
  void ArriveAt(MonotonicTime when, End<Message>* to) {
    events_->At(when, [self = this->shared_from_this(), to] {
      if (!to->open || to->under_way.empty()) return;
      const MonotonicTime now = self->events_->now();
      const MonotonicTime opens = self->OpensFor(*to);
      if (opens > now) return self->ArriveAt(opens + self->Delay(), to);
      Message message = std::move(to->under_way.front());
      to->under_way.pop_front();
      if (now >= to->cut) return;
      auto receive = to->on_message;  // which may close this end
      receive(std::move(message));
    });
  }

  template <class Message>
  MonotonicTime OpensFor(const End<Message>& to) const {
    const bool at_router = to.process == router_.process;
    return partitions_->OpensAt(at_router ? worker_.process : router_.process,
                                to.process);
  }

  Duration Delay() {
    return random_.Between(delays_.min_delay, delays_.max_delay);
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
    end.under_way.clear();
  }

  // `told`: by the other end, so not through a partition.
  template <class Message>
  void NoticeLater(End<Message> SimStream::* end, Duration at_most, bool told) {
    events_->After(random_.Between(delays_.min_delay, at_most),
                   [self = this->shared_from_this(), end, told] {
                     self->Notice(end, told);
                   });
  }

  template <class Message>
  void Notice(End<Message> SimStream::* end, bool told) {
    End<Message>& noticing = this->*end;
    if (!noticing.open) return;
    const MonotonicTime opens = OpensFor(noticing);
    if (told && opens > events_->now()) {
      return NoticeLater(end, opens - events_->now() + delays_.max_delay, told);
    }
    auto closed = std::move(noticing.on_closed);
    CloseSilently(noticing);
    closed();
  }

  EventQueue* events_;
  const Partitions* partitions_;
  Random random_;
  StreamDelays delays_;
  End<Event> router_;
  End<Command> worker_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_SIM_STREAM_H_
