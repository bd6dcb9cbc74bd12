#ifndef BATON_COMMON_WORKER_SESSION_READER_H_
#define BATON_COMMON_WORKER_SESSION_READER_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace baton {

// The reading half of a session's call: commands are read no faster than they
// are handled, so a router cannot fill the worker's memory. Owned by a
// shared_ptr.
template <class Command, class Event>
class SessionReader
    : public grpc::ServerBidiReactor<Command, Event>,
      public std::enable_shared_from_this<SessionReader<Command, Event>> {
 public:
  // At most `max_unhandled` commands whose receipts are alive.
  explicit SessionReader(size_t max_unhandled)
      : max_unhandled_(max_unhandled) {}

  void OnReadDone(bool ok) final {
    Command command;
    std::shared_ptr<void> receipt;
    {
      std::lock_guard lock(read_mutex_);
      reading_ = false;
      if (ok) {
        command = std::exchange(command_, Command());
        ++unhandled_;
        receipt = MakeReceipt();
      }
    }
    if (!ok) {
      OnReadsEnded();
      return;
    }
    OnCommand(std::move(command), std::move(receipt));
    Read();
  }

 protected:
  // On gRPC's threads, one at a time, in order. The command counts as
  // unhandled until the receipt is dropped.
  virtual void OnCommand(Command command, std::shared_ptr<void> receipt) = 0;
  // No more commands will come.
  virtual void OnReadsEnded() = 0;

  // Begins, or goes on as soon as there is room.
  void Read() {
    std::lock_guard lock(read_mutex_);
    ReadLocked();
  }
  void StopReading() {
    std::lock_guard lock(read_mutex_);
    stopped_ = true;
  }

 private:
  void ReadLocked() {
    if (reading_ || stopped_ || unhandled_ >= max_unhandled_) return;
    reading_ = true;
    this->StartRead(&command_);
  }
  std::shared_ptr<void> MakeReceipt() {
    auto handled = [weak = this->weak_from_this()](void*) {
      const std::shared_ptr<SessionReader> reader = weak.lock();
      if (reader == nullptr) return;
      std::lock_guard lock(reader->read_mutex_);
      --reader->unhandled_;
      reader->ReadLocked();
    };
    return std::shared_ptr<void>(static_cast<void*>(nullptr),
                                 std::move(handled));
  }

  const size_t max_unhandled_;
  std::mutex read_mutex_;
  Command command_;       // of the read in progress
  size_t unhandled_ = 0;  // read_mutex_
  bool reading_ = false;  // read_mutex_
  bool stopped_ = false;  // read_mutex_
};

}  // namespace baton

#endif  // BATON_COMMON_WORKER_SESSION_READER_H_
