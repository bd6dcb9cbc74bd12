#ifndef BATON_KV_TRANSFER_LOOPBACK_LOOPBACK_TRANSPORT_H_
#define BATON_KV_TRANSFER_LOOPBACK_LOOPBACK_TRANSPORT_H_

#include <memory>
#include <string>

#include "kv_transfer/transport.h"

namespace baton::transfer {

// Where the loopback transports of one process find each other. Thread-safe.
// Transports made from a hub may outlive it, but find nobody new then.
class LoopbackHub {
 public:
  LoopbackHub();
  ~LoopbackHub();
  LoopbackHub(const LoopbackHub&) = delete;
  LoopbackHub& operator=(const LoopbackHub&) = delete;

  // A transport whose address is "loopback:" and a number unique in the hub.
  // Each transport may run on a thread of its own.
  std::unique_ptr<Transport> MakeTransport();

 private:
  friend class LoopbackTransport;
  struct Directory;
  std::shared_ptr<Directory> directory_;
};

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_LOOPBACK_LOOPBACK_TRANSPORT_H_
