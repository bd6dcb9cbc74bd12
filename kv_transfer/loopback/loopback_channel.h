#ifndef BATON_KV_TRANSFER_LOOPBACK_LOOPBACK_CHANNEL_H_
#define BATON_KV_TRANSFER_LOOPBACK_LOOPBACK_CHANNEL_H_

#include <array>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kv_transfer/transport.h"

namespace baton::transfer {

// What ends a transport's Wait. Thread-safe.
class LoopbackBell {
 public:
  void Ring();
  void Wait(Duration timeout);

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool rung_ = false;
};

// Two ends that exchange messages by reference: the receiving thread copies
// the sender's payload. Thread-safe; `end` is 0 for the side that connected,
// 1 for the other.
class LoopbackChannel {
 public:
  struct Parcel {
    SendId send;
    std::string header;
    absl::Span<const std::byte> payload;
  };
  struct Receipt {
    SendId send;
    absl::Status status;
  };

  LoopbackChannel(std::shared_ptr<LoopbackBell> connector,
                  std::shared_ptr<LoopbackBell> acceptor);

  // False when the channel is closed.
  bool Put(int end, Parcel parcel);
  // The next parcel for `end`, in the order of Put. Its payload stays valid
  // until Return, even if the channel is closed meanwhile.
  std::optional<Parcel> Take(int end);
  void Return(int end, SendId send);
  // What became of the parcels that `end` put.
  std::vector<Receipt> TakeReceipts(int end);

  // Parcels that nobody took come back as failed; idempotent.
  void Close(const absl::Status& why);
  // Why the channel is closed, once no memory of `end` is in use and all its
  // receipts were taken.
  std::optional<absl::Status> TakeClosed(int end);

 private:
  struct End {
    std::shared_ptr<LoopbackBell> bell;
    std::deque<Parcel> inbox;
    bool copying = false;  // a parcel was taken and not returned
    std::vector<Receipt> receipts;
    bool told_closed = false;
  };

  std::mutex mutex_;
  std::array<End, 2> ends_;             // mutex_
  std::optional<absl::Status> closed_;  // mutex_
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_LOOPBACK_LOOPBACK_CHANNEL_H_
