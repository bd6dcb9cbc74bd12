#ifndef BATON_COMMON_WORKER_SESSION_STREAM_H_
#define BATON_COMMON_WORKER_SESSION_STREAM_H_

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/monotonic_time.h"
#include "common/base/strings.h"
#include "common/rpc/status.h"
#include "common/telemetry/log.h"
#include "common/worker/session_reader.h"
#include "common/worker/session_registry.h"
#include "common/worker/session_table.h"
#include "proto/cluster.pb.h"

namespace baton {

// One call. Finish is called once, with no write in flight. A write that a
// silent router keeps in flight ends with the connection's keepalive.
template <class Command, class Event>
class SessionStream final : public SessionReader<Command, Event> {
 public:
  using Registry = SessionRegistry<Command, Event>;

  SessionStream(std::shared_ptr<Registry> registry,
                grpc::CallbackServerContext* context)
      : SessionReader<Command, Event>(registry->limits.max_unhandled_commands),
        registry_(std::move(registry)),
        context_(context) {}

  void Start(std::shared_ptr<SessionStream> self) {
    self_ = std::move(self);
    bool crowded;
    {
      std::lock_guard lock(registry_->mutex);
      crowded = ++registry_->calls > 2 * registry_->limits.max_sessions;
    }
    if (crowded) {
      End(absl::ResourceExhaustedError("too many sessions"));
    } else {
      AwaitHello();
      this->Read();
    }
  }

  void Send(Event event) {
    std::lock_guard lock(mutex_);
    if (ending_) return;
    event.set_sequence(next_sequence_++);
    queued_bytes_ += event.ByteSizeLong();
    queue_.push_back(std::move(event));
    if (queue_.size() > registry_->limits.max_queued_events ||
        queued_bytes_ > registry_->limits.max_queued_bytes) {
      log::Warn("session {}: the router does not read, cutting it off",
                session_.load());
      EndLocked(absl::ResourceExhaustedError("the router does not read"));
      if (writing_) context_->TryCancel();
      return;
    }
    WriteLocked();
  }

  void End(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    EndLocked(status);
  }
  void EndAfterQueue(const absl::Status& status) {
    std::lock_guard lock(mutex_);
    if (ending_ || last_words_) return;
    last_words_ = status;
    WriteLocked();
  }

  void OnWriteDone(bool ok) override {
    std::lock_guard lock(mutex_);
    writing_ = false;
    if (!queue_.empty()) queue_.pop_front();
    if (!ok) EndLocked(absl::UnavailableError("the stream broke"));
    if (ending_) {
      FinishLocked();
    } else {
      queued_bytes_ -= written_bytes_;
      WriteLocked();
    }
  }

  void OnCancel() override {
    LoseSession();
    End(absl::CancelledError("cancelled"));
  }

  void OnDone() override {
    {
      std::lock_guard lock(registry_->mutex);
      --registry_->calls;
      registry_->table.End(SessionId(session_));
      registry_->streams.erase(SessionId(session_));
    }
    LoseSession();
    std::shared_ptr<SessionStream> self = std::move(self_);
  }

 private:
  void OnReadsEnded() override {
    LoseSession();
    End(absl::OkStatus());
  }

  void OnCommand(Command command, std::shared_ptr<void> receipt) override {
    if (command.has_hello() == (session_ != 0)) {
      End(absl::InvalidArgumentError(
          "session: hello comes first and only once"));
    } else if (session_ != 0) {
      registry_->callbacks.command(SessionId(session_), std::move(command),
                                   std::move(receipt));
    } else if (absl::Status status = Open(command.hello()); !status.ok()) {
      log::Warn("session refused: {}", std::string(status.message()));
      End(status);
    }
  }

  void AwaitHello() {
    const Duration limit = registry_->limits.hello_timeout;
    const auto deadline =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                     gpr_time_from_nanos(limit.count(), GPR_TIMESPAN));
    hello_alarm_.Set(deadline, [weak = std::weak_ptr(self_)](bool passed) {
      const std::shared_ptr<SessionStream> stream = weak.lock();
      if (!passed || stream == nullptr || stream->session_ != 0) return;
      stream->End(absl::DeadlineExceededError(
          StrCat("session: no hello within ",
                 Seconds(stream->registry_->limits.hello_timeout), " s")));
    });
  }

  absl::Status Open(const v1::RouterHello& hello) {
    std::shared_ptr<SessionStream> fenced;
    v1::WorkerHello answer = registry_->hello;
    {
      std::lock_guard lock(registry_->mutex);
      absl::StatusOr<SessionTable::Admission> admission =
          registry_->table.Admit(hello);
      if (!admission.ok()) return admission.status();
      answer.set_protocol(admission->protocol);
      session_ = admission->session.value();
      hello_alarm_.Cancel();
      registry_->streams[admission->session] = self_;
      if (admission->fenced) {
        auto it = registry_->streams.find(*admission->fenced);
        if (it != registry_->streams.end()) fenced = it->second;
      }
    }
    if (fenced != nullptr) {
      fenced->LoseSession();
      fenced->End(absl::AbortedError("fenced by a newer session"));
    }
    log::Info("session {} of router {} opened", session_.load(),
              hello.router_id());
    Event event;
    *event.mutable_hello() = std::move(answer);
    Send(std::move(event));
    registry_->callbacks.opened(SessionId(session_));
    opened_ = true;
    return absl::OkStatus();
  }

  // Tells the worker once that everything of the session is void. While the
  // session is being opened this is left to OnDone.
  void LoseSession() {
    if (!opened_ || lost_.exchange(true)) return;
    log::Info("session {} ended", session_.load());
    registry_->callbacks.lost(SessionId(session_));
  }

  void WriteLocked() {
    if (writing_ || ending_) return;
    if (queue_.empty()) {
      if (last_words_) EndLocked(*last_words_);
      return;
    }
    writing_ = true;
    written_bytes_ = queue_.front().ByteSizeLong();
    this->StartWrite(&queue_.front());
  }

  void EndLocked(const absl::Status& status) {
    if (ending_) return;
    ending_ = true;
    this->StopReading();
    status_ = ToGrpcStatus(status);
    if (!writing_) FinishLocked();
  }
  void FinishLocked() {
    if (finished_) return;
    finished_ = true;
    this->Finish(status_);
  }

  const std::shared_ptr<Registry> registry_;
  grpc::CallbackServerContext* const context_;
  std::shared_ptr<SessionStream> self_;  // until OnDone
  grpc::Alarm hello_alarm_;
  std::atomic<uint64_t> session_{0};  // set once, by the first read
  std::atomic<bool> opened_{false};
  std::atomic<bool> lost_{false};

  std::mutex mutex_;
  std::deque<Event> queue_;     // mutex_; the front one is being written
  size_t queued_bytes_ = 0;     // mutex_
  size_t written_bytes_ = 0;    // mutex_
  uint64_t next_sequence_ = 1;  // mutex_
  std::optional<absl::Status> last_words_;  // mutex_
  bool writing_ = false;                    // mutex_
  bool ending_ = false;                     // mutex_
  bool finished_ = false;                   // mutex_
  grpc::Status status_;                     // mutex_
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_SESSION_STREAM_H_
