#include "kernels/cpu/peer_watch.h"

#include <algorithm>

namespace baton::kernels::cpu {
namespace {

constexpr int kGrowth = 4;
constexpr int kLongItem = 4;  // times the mean of the caller's own

}  // namespace

bool PeerWatch::SharesAt(int64_t now) {
  if (!alone_) return true;
  if (now < alone_until_) return false;
  alone_ = false;
  shared_since_ = now;
  return true;
}

void PeerWatch::OnLoop(int64_t now, const Loop& loop) {
  // Peers that leave nothing to the caller are not late.
  if (loop.own_items == 0) return;
  if (now - shared_since_ > kGrowth * next_alone_) {
    next_alone_ = kShortestAlone;
    shared_since_ = now;
  }
  const int64_t item = loop.work / loop.own_items;
  elapsed_ += loop.work + loop.wait;
  needed_ += item * loop.items;
  if (loop.wait > kLate + kLongItem * item || elapsed_ - needed_ > kLate) {
    GoAlone(now);
  } else if (elapsed_ > kRecent) {
    elapsed_ /= 2;
    needed_ /= 2;
  }
}

void PeerWatch::GoAlone(int64_t now) {
  alone_ = true;
  alone_until_ = now + next_alone_;
  next_alone_ = std::min(kGrowth * next_alone_, kLongestAlone);
  elapsed_ = 0;
  needed_ = 0;
}

}  // namespace baton::kernels::cpu
