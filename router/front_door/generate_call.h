#ifndef BATON_ROUTER_FRONT_DOOR_GENERATE_CALL_H_
#define BATON_ROUTER_FRONT_DOOR_GENERATE_CALL_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "proto/generation.pb.h"
#include "router/front_door/router_driver.h"

namespace baton::router {

// One Generate stream: writes what the driver emits, as fast as the client
// reads. A client that lets more than kMaxQueuedBytes pile up is cut off, and
// one that does not take the end of its answer is cancelled after kEndGrace.
// Deletes itself when gRPC is done with it and the driver has let go.
class GenerateCall final : public grpc::ServerWriteReactor<v1::GenerateEvent>,
                           public AnswerSink,
                           public std::enable_shared_from_this<GenerateCall> {
 public:
  static constexpr size_t kMaxQueuedBytes = 8 << 20;
  static constexpr Duration kEndGrace = std::chrono::seconds(5);

  // `driver` outlives the call.
  static std::shared_ptr<GenerateCall> Create(
      grpc::CallbackServerContext* context, RouterDriver* driver,
      std::string label, std::string traceparent);

  // The request was refused before it reached the driver.
  void Refuse(const absl::Status& status);
  void Run(ClientRequest request);

  void OnEvent(v1::GenerateEvent event) override;
  void OnFinish(const absl::Status& status) override;

  void OnCancel() override;
  void OnSendInitialMetadataDone(bool) override {}
  void OnWriteDone(bool ok) override;
  void OnDone() override;

 private:
  GenerateCall(grpc::CallbackServerContext* context, RouterDriver* driver,
               std::string label, std::string traceparent);
  void FinishWith(const absl::Status& status);
  void LogEnd(const absl::Status& status) const;

  grpc::CallbackServerContext* const context_;  // until OnDone
  RouterDriver* const driver_;
  const std::string label_;
  const std::string traceparent_;
  const MonotonicTime received_ = MonotonicNow();
  RequestId id_;
  std::shared_ptr<GenerateCall> self_;  // until OnDone

  std::mutex mutex_;
  std::deque<v1::GenerateEvent> queue_;  // the front is being written
  size_t queued_bytes_ = 0;
  bool too_slow_ = false;
  bool gone_ = false;  // the client cancelled or a write failed
  bool ended_ = false;
  bool done_ = false;  // OnDone ran
  absl::Status status_;
  uint64_t tokens_ = 0;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_GENERATE_CALL_H_
