#include "router/membership/worker_link.h"

#include <utility>

#include "common/base/random_bytes.h"
#include "common/base/strings.h"
#include "common/rpc/channel.h"
#include "common/telemetry/log.h"
#include "proto/decode.grpc.pb.h"
#include "proto/prefill.grpc.pb.h"
#include "router/membership/session_stream.h"

namespace baton::router {
namespace {

constexpr uint32_t kProtocol = 1;

struct PrefillSession {
  using Service = v1::PrefillWorker;
  using Command = v1::PrefillCommand;
  using WorkerEvent = v1::PrefillEvent;
  using Message = PrefillMessage;
  static constexpr PeerRole kRole = PeerRole::kPrefill;
};
struct DecodeSession {
  using Service = v1::DecodeWorker;
  using Command = v1::DecodeCommand;
  using WorkerEvent = v1::DecodeEvent;
  using Message = DecodeMessage;
  static constexpr PeerRole kRole = PeerRole::kDecode;
};

template <class Session>
class Link final : public WorkerLink {
 public:
  Link(LinkContext* context, MemberList::Member member)
      : context_(context),
        member_(std::move(member)),
        backoff_(context->options.backoff, RandomNonZero64()) {}

  ~Link() override { DropStream(); }

  void Start() override {
    if (!gone_ && stream_ == nullptr) Connect();
  }

  void Send(typename Session::Command command) override {
    if (!up_) return;
    if (!stream_->Send(std::move(command))) {
      Restart(absl::ResourceExhaustedError("commands: too many are waiting"));
    }
  }

  void Restart(const absl::Status& why) override {
    DropStream();
    OnEnd(why);
  }

  void Hold() override {
    DropStream();
    up_ = false;
  }

  void Retire(std::function<void()> gone) override {
    gone_ = std::move(gone);
    if (up_) return;
    DropStream();
    gone_();
  }

 private:
  using Command = typename Session::Command;
  using WorkerEvent = typename Session::WorkerEvent;
  using Stream = SessionStream<Command, WorkerEvent>;

  void Connect() {
    ChannelOptions options;
    options.own_connection = true;
    options.keepalive_time = context_->options.keepalive_time;
    options.keepalive_timeout = context_->options.keepalive_timeout;
    options.tls = context_->options.tls;
    options.peer_roles = {Session::kRole};
    std::shared_ptr<typename Session::Service::Stub> stub =
        Session::Service::NewStub(MakeChannel(member_.address, options));
    stream_ = Stream::Open(
        [stub](grpc::ClientContext* context,
               grpc::ClientBidiReactor<Command, WorkerEvent>* reactor) {
          stub->async()->Session(context, reactor);
        },
        {[this](WorkerEvent event) { OnEvent(std::move(event)); },
         [this](absl::Status status) {
           stream_.reset();
           OnEnd(status);
         }},
        context_->loop, context_->streams);
    Command hello;
    hello.mutable_hello()->set_protocol_min(kProtocol);
    hello.mutable_hello()->set_protocol_max(kProtocol);
    hello.mutable_hello()->set_router_epoch(
        context_->options.router_epoch.value());
    session_ = context_->next_session++;
    hello.mutable_hello()->set_session(session_);
    hello.mutable_hello()->set_router_id(context_->options.router_id);
    stream_->Send(std::move(hello));
    StartTimer(context_->options.hello_timeout, [this] {
      Restart(absl::DeadlineExceededError("no hello in time"));
    });
  }

  void OnEvent(WorkerEvent event) {
    if (up_) {
      context_->sink(
          typename Session::Message{member_.index, std::move(event)});
      return;
    }
    if (!event.has_hello() || event.sequence() != 1) {
      Restart(
          absl::FailedPreconditionError("hello: must be event 1 of a session"));
      return;
    }
    StopTimer();
    backoff_.Reset();
    up_ = true;
    last_error_.clear();
    log::Info("{} at {}: session up, worker epoch {:016x}",
              event.hello().worker_id(), member_.address,
              event.hello().worker_epoch());
    context_->sink(SessionUp{member_.index, member_.role,
                             std::move(*event.mutable_hello()), session_});
  }

  void OnEnd(const absl::Status& why) {
    StopTimer();
    const std::string error = why.ToString();
    if (up_ || error != last_error_) {
      log::Warn("{}: {}: {}", member_.address,
                up_ ? "session lost" : "no session", error);
      last_error_ = error;
    }
    up_ = false;
    if (!gone_) StartTimer(backoff_.Next(), [this] { Connect(); });
    context_->sink(SessionDown{member_.index, why});
    if (gone_) gone_();
  }

  void DropStream() {
    StopTimer();
    if (stream_ != nullptr) std::exchange(stream_, nullptr)->Abandon();
  }

  void StartTimer(Duration delay, std::function<void()> task) {
    StopTimer();
    timer_set_ = std::make_shared<bool>(true);
    timer_ = context_->loop->PostAt(MonotonicNow() + delay,
                                    [set = timer_set_, task = std::move(task)] {
                                      if (std::exchange(*set, false)) task();
                                    });
  }

  void StopTimer() {
    if (timer_set_ == nullptr || !std::exchange(*timer_set_, false)) return;
    context_->loop->CancelTimer(timer_);
  }

  LinkContext* const context_;
  const MemberList::Member member_;
  Backoff backoff_;
  std::shared_ptr<Stream> stream_;
  uint64_t session_ = 0;  // the last one
  bool up_ = false;
  EventLoop::TimerId timer_ = 0;     // hello timeout or reconnect
  std::shared_ptr<bool> timer_set_;  // false: a timer already due does nothing
  std::string last_error_;
  std::function<void()> gone_;
};

}  // namespace

void WorkerLink::Send(v1::PrefillCommand) {}
void WorkerLink::Send(v1::DecodeCommand) {}

std::unique_ptr<WorkerLink> WorkerLink::Make(LinkContext* context,
                                             MemberList::Member member) {
  if (member.role == v1::WORKER_ROLE_PREFILL) {
    return std::make_unique<Link<PrefillSession>>(context, std::move(member));
  }
  return std::make_unique<Link<DecodeSession>>(context, std::move(member));
}

}  // namespace baton::router
