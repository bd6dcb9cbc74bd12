#ifndef BATON_KERNELS_CPU_PEER_WATCH_H_
#define BATON_KERNELS_CPU_PEER_WATCH_H_

#include <cstdint>

namespace baton::kernels::cpu {

// Decides whether loops should be shared with peer threads. A peer whose core
// is busy with a foreign process keeps everybody waiting at the barrier, for a
// time slice of the system at worst: then loops run on one thread for a while,
// after which the peers are tried again; the while grows as long as that fails.
// Times are in nanoseconds of one clock. Pure.
class PeerWatch {
 public:
  // One barrier that is later than this, beyond what a long item explains, or
  // loops of late that took this much longer than they would have alone.
  static constexpr int64_t kLate = 1'000'000;
  static constexpr int64_t kRecent = 8'000'000;  // "of late"
  static constexpr int64_t kShortestAlone = 5'000'000;
  static constexpr int64_t kLongestAlone = 1'280'000'000;

  // A loop of `items` that peers could share, as its caller saw it: it ran
  // `own_items` in `work`, then waited for the peers' last ones.
  struct Loop {
    int items = 0;
    int own_items = 0;
    int64_t work = 0;
    int64_t wait = 0;
  };

  // Whether a loop that begins now should be shared.
  bool SharesAt(int64_t now);

  // To be called at the end of every shared loop.
  void OnLoop(int64_t now, const Loop& loop);

 private:
  void GoAlone(int64_t now);

  bool alone_ = false;
  int64_t alone_until_ = 0;
  int64_t next_alone_ = kShortestAlone;
  int64_t shared_since_ = 0;
  int64_t elapsed_ = 0;  // of recent loops
  int64_t needed_ = 0;   // by one thread for them
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_PEER_WATCH_H_
