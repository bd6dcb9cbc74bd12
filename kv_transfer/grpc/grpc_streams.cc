#include "kv_transfer/grpc/grpc_streams.h"

#include <atomic>
#include <utility>

#include "common/base/strings.h"
#include "common/rpc/status.h"

namespace baton::transfer {
namespace {

using Piece = v1::LinkPiece;

class OpenedStream final : public GrpcPipe,
                           public grpc::ClientBidiReactor<Piece, Piece> {
 public:
  OpenedStream(std::shared_ptr<grpc::Channel> channel,
               std::shared_ptr<GrpcBell> bell)
      : GrpcPipe(std::move(bell)),
        channel_(std::move(channel)),
        stub_(channel_) {
    stub_.async()->Link(&context_, this);
    AddHold();
    Begin();
    StartCall();
  }

  void OnReadDone(bool ok) override { ReadDone(ok); }
  void OnWriteDone(bool ok) override { WriteDone(ok); }
  void OnDone(const grpc::Status& status) override {
    Done(status.ok() ? absl::UnavailableError("the peer ended the link")
                     : FromGrpcStatus(status));
  }

 private:
  void StartReadOf(Piece* piece) override { StartRead(piece); }
  void StartWriteOf(const Piece* piece) override { StartWrite(piece); }
  void EndCall() override { RemoveHold(); }
  void CancelCall() override { context_.TryCancel(); }

  const std::shared_ptr<grpc::Channel> channel_;
  v1::KvLink::Stub stub_;
  grpc::ClientContext context_;
};

class AcceptedStream final : public GrpcPipe,
                             public grpc::ServerBidiReactor<Piece, Piece> {
 public:
  AcceptedStream(grpc::CallbackServerContext* context,
                 std::shared_ptr<GrpcBell> bell)
      : GrpcPipe(std::move(bell)), context_(context) {
    Begin();
  }

  void OnReadDone(bool ok) override { ReadDone(ok); }
  void OnWriteDone(bool ok) override {
    WriteDone(ok);
    // A stream that ended while a write was under way.
    if (finish_after_write_.exchange(false)) FinishNow();
  }
  void OnDone() override {
    Done(absl::UnavailableError("the peer ended the link"));
  }

 private:
  void StartReadOf(Piece* piece) override { StartRead(piece); }
  void StartWriteOf(const Piece* piece) override { StartWrite(piece); }
  void EndCall() override {
    if (writing()) {
      finish_after_write_ = true;
    } else {
      FinishNow();
    }
  }
  void FinishNow() {
    Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the link is closed"));
  }
  void CancelCall() override { context_->TryCancel(); }

  grpc::CallbackServerContext* const context_;
  std::atomic<bool> finish_after_write_{false};
};

// Only says no.
class RefusedStream final : public grpc::ServerBidiReactor<Piece, Piece> {
 public:
  explicit RefusedStream(const absl::Status& why) { Finish(ToGrpcStatus(why)); }
  void OnDone() override { delete this; }
};

}  // namespace

std::unique_ptr<GrpcPipe> OpenGrpcStream(const std::string& address,
                                         const ChannelOptions& options,
                                         std::shared_ptr<GrpcBell> bell) {
  return std::make_unique<OpenedStream>(MakeChannel(address, options),
                                        std::move(bell));
}

GrpcStreamService::GrpcStreamService(size_t max_streams,
                                     std::shared_ptr<GrpcBell> bell)
    : max_streams_(max_streams), bell_(std::move(bell)) {}

GrpcStreamService::~GrpcStreamService() = default;

grpc::ServerBidiReactor<Piece, Piece>* GrpcStreamService::Link(
    grpc::CallbackServerContext* context) {
  std::lock_guard lock(mutex_);
  if (stopped_) {
    return new RefusedStream(absl::UnavailableError("shutting down"));
  }
  if (streams_ >= max_streams_) {
    return new RefusedStream(absl::ResourceExhaustedError(
        StrCat("links: all ", max_streams_, " are in use")));
  }
  ++streams_;
  auto stream = std::make_unique<AcceptedStream>(context, bell_);
  AcceptedStream* const reactor = stream.get();
  arrivals_.push_back(std::move(stream));
  bell_->Ring();
  return reactor;
}

std::vector<std::unique_ptr<GrpcPipe>> GrpcStreamService::TakeArrivals() {
  std::lock_guard lock(mutex_);
  return std::exchange(arrivals_, {});
}

void GrpcStreamService::Forget(size_t streams) {
  std::lock_guard lock(mutex_);
  streams_ -= streams;
}

void GrpcStreamService::Stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
}

}  // namespace baton::transfer
