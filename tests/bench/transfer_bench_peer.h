#ifndef BATON_TESTS_BENCH_TRANSFER_BENCH_PEER_H_
#define BATON_TESTS_BENCH_TRANSFER_BENCH_PEER_H_

#include <cstddef>
#include <functional>
#include <string>

namespace baton::transfer {

// The other of two benchmark processes, over a socket pair. Blocking; aborts
// when the peer is gone.
class BenchPeer {
 public:
  explicit BenchPeer(int fd) : fd_(fd) {}

  void Send(const std::string& message) const;
  std::string Receive() const;
  // Both sides have come here.
  void Meet() const {
    Send("");
    Receive();
  }

 private:
  int fd_;
};

// Runs both functions in processes of their own, each pinned to a core, and
// waits for them. False if one failed.
bool RunPair(const std::function<void(const BenchPeer&)>& receiver,
             const std::function<void(const BenchPeer&)>& holder);

// Copies for one message size.
int RoundsFor(size_t bytes);

}  // namespace baton::transfer

#endif  // BATON_TESTS_BENCH_TRANSFER_BENCH_PEER_H_
