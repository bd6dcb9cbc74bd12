#ifndef BATON_KV_TRANSFER_GRPC_GRPC_PIPE_H_
#define BATON_KV_TRANSFER_GRPC_GRPC_PIPE_H_

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/base/monotonic_time.h"
#include "proto/kv_link.pb.h"

namespace baton::transfer {

// What ends a transport's Wait. Thread-safe.
class GrpcBell {
 public:
  void Ring();
  // Until it rings, or rang since the last Wait, or `timeout`.
  void Wait(Duration timeout);

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool rung_ = false;  // mutex_
};

// One end of a stream, between the thread of the transport and those of gRPC.
// Each direction holds at most kPieces pieces, which are copies: a peer that
// sends more, or takes less, waits. Rings the bell for every news.
class GrpcPipe {
 public:
  static constexpr size_t kPieces = 4;

  explicit GrpcPipe(std::shared_ptr<GrpcBell> bell) : bell_(std::move(bell)) {}
  // Requires finished().
  virtual ~GrpcPipe() = default;
  GrpcPipe(const GrpcPipe&) = delete;
  GrpcPipe& operator=(const GrpcPipe&) = delete;

  // Whether the next Put is in time.
  bool HasRoom() const;
  void Put(v1::LinkPiece piece);
  // The next piece that came; nothing after Close.
  std::optional<v1::LinkPiece> Take();
  // Why the stream is over, once all that came was taken.
  std::optional<absl::Status> Over() const;
  // By force.
  void Close();
  // gRPC has let go of the object.
  bool finished() const;

 protected:
  // What the two kinds of stream do differently, called with the lock held.
  virtual void StartReadOf(v1::LinkPiece* piece) = 0;
  virtual void StartWriteOf(const v1::LinkPiece* piece) = 0;
  virtual void EndCall() = 0;  // once; no read or write is started after it
  virtual void CancelCall() = 0;

  // The events of both kinds.
  void Begin();
  void ReadDone(bool ok);
  void WriteDone(bool ok);
  void Done(const absl::Status& status);
  bool writing() const { return writing_; }

 private:
  void ReadIfRoom();
  void Break();

  const std::shared_ptr<GrpcBell> bell_;
  mutable std::mutex mutex_;
  v1::LinkPiece read_;                  // gRPC's while reading_
  std::deque<v1::LinkPiece> incoming_;  // mutex_
  std::deque<v1::LinkPiece> outgoing_;  // mutex_; the front while writing_
  bool reading_ = false;                // mutex_
  bool writing_ = false;                // mutex_
  bool broken_ = false;                 // mutex_; nothing is started any more
  bool closed_ = false;                 // mutex_
  std::optional<absl::Status> done_;    // mutex_
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_GRPC_GRPC_PIPE_H_
