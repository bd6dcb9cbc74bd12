#ifndef BATON_ROUTER_FRONT_DOOR_GENERATE_CALL_H_
#define BATON_ROUTER_FRONT_DOOR_GENERATE_CALL_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "proto/generation.pb.h"
#include "router/front_door/request_log.h"
#include "router/front_door/router_driver.h"

namespace baton::router {

struct StreamLimits {
  // Of an answer, handed to gRPC or waiting to be, that the client has not
  // taken yet.
  size_t max_unread_bytes = 1 << 20;
  // A client that takes nothing for this long is cut off. gRPC and the kernel
  // take megabytes on its behalf first, so short answers never wait.
  Duration slow_client_timeout = std::chrono::seconds(30);
  // How long one that was cut off may take to fetch the reason.
  Duration cut_off_grace = std::chrono::seconds(5);
};

// One Generate stream: writes what the driver emits, one event at a time, as
// fast as the client reads. A client that exceeds a limit gets
// RESOURCE_EXHAUSTED, and with that its request ends. What the
// core has held back comes at once, so it waits here until the client has read
// enough: it is cut off for taking nothing, and when the answer is not taken by
// the request's deadline (or its end, if that is later) and
// slow_client_timeout. The end of an answer may be taken slow_client_timeout
// long within that, that of one that was cut off cut_off_grace; then the call
// is cancelled. Deletes itself when gRPC is done with it and the driver has let
// go.
class GenerateCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                           public AnswerSink,
                           public std::enable_shared_from_this<GenerateCall> {
 public:
  // Both outlive the calls.
  struct Surroundings {
    RouterDriver* driver = nullptr;
    RequestLog* log = nullptr;
  };
  static std::shared_ptr<GenerateCall> Create(
      grpc::CallbackServerContext* context, Surroundings around,
      StreamLimits limits, std::string traceparent);

  // Of a request with its id, label and time of receipt. `slot` is kept as
  // long as the call is open.
  void Run(ClientRequest request, std::shared_ptr<void> slot);

  void OnEvent(v1::GenerateEvent event, bool held_back) override;
  void OnFinish(const absl::Status& status) override;

  void OnCancel() override;
  void OnSendInitialMetadataDone(bool) override {}
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  GenerateCall(grpc::CallbackServerContext* context, Surroundings around,
               StreamLimits limits, std::string traceparent);
  void FinishWith(const absl::Status& status);
  // The rest with mutex_ held.
  void Queue(const v1::GenerateEvent& event);
  // Queues of what the core held back as much as a client may leave unread.
  void QueueHeldBack();
  // The end of the answer is queued: from now on it has a time limit.
  void LimitEnd();
  void CancelAfter(Duration grace);
  void WriteFront();
  void DropQueued(size_t keep);
  void WatchWrites();
  void CutOff(std::string why);

  grpc::CallbackServerContext* const context_;  // until OnDone
  RouterDriver* const driver_;
  RequestLog* const log_;
  const StreamLimits limits_;
  const std::string traceparent_;
  // Of Run().
  RequestId id_;
  std::string label_;
  MonotonicTime received_;
  MonotonicTime deadline_;
  std::shared_ptr<GenerateCall> self_;  // until OnDone

  std::mutex mutex_;
  std::shared_ptr<void> slot_;
  std::deque<grpc::ByteBuffer> queue_;  // events; the front is being written
  size_t unread_bytes_ = 0;             // in queue_
  // By the core, not in queue_ yet, which has at least one event then.
  std::deque<v1::GenerateEvent> held_back_;
  MonotonicTime write_started_;  // of the front
  bool watching_ = false;        // a timer looks at the writes
  std::string too_slow_;         // why it was cut off; empty: was not
  bool gone_ = false;            // the client cancelled or a write failed
  bool ended_ = false;
  MonotonicTime take_by_ = kNever;  // once it has ended: all of the answer
  bool done_ = false;               // OnDone ran
  absl::Status status_;
  uint64_t tokens_ = 0;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_GENERATE_CALL_H_
