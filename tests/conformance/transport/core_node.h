#ifndef BATON_TESTS_CONFORMANCE_TRANSPORT_CORE_NODE_H_
#define BATON_TESTS_CONFORMANCE_TRANSPORT_CORE_NODE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kv_transfer/transfer_core.h"

namespace baton::transfer {

// A TransferCore on the transport under test, with blocks of 1 MiB whose bytes
// are known.
class CoreNode {
 public:
  CoreNode();
  ~CoreNode();

  Ticket Land(uint32_t blocks, Duration timeout = std::chrono::seconds(60));
  // Pushes the first `count` blocks; seals if there are no more.
  TransferId Push(const Ticket& ticket, uint32_t count,
                  Duration timeout = std::chrono::seconds(60));

  bool Poll();
  void Wait(Duration timeout) { transport_->Wait(timeout); }
  // Polls until an event of this name was seen; false after 30 s.
  bool PollUntil(std::string_view event);
  // Names and status codes of the events since, joined by spaces; without
  // LandingProgress, of which there are as many as a transfer takes time.
  std::string TakeEvents();
  // Whether the landed blocks hold what the peer pushed.
  bool LandedIntact() const;

  TransferCore* core() { return core_.get(); }

 private:
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<TransferCore> core_;
  std::vector<std::vector<std::byte>> landed_;
  std::vector<TransferEvent> events_;
};

}  // namespace baton::transfer

#endif  // BATON_TESTS_CONFORMANCE_TRANSPORT_CORE_NODE_H_
