#include "decode_worker/speculation/drafter_memory.h"

#include <algorithm>
#include <numeric>

namespace baton::decode {

std::vector<uint32_t> ShareTokens(absl::Span<const uint64_t> unread,
                                  uint32_t budget) {
  std::vector<size_t> order(unread.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return unread[a] < unread[b]; });
  std::vector<uint32_t> shares(unread.size(), 0);
  size_t sharing = order.size();
  for (const size_t i : order) {
    // Rounded up: a budget of fewer tokens than drafters goes to those that
    // have the least to read, until they have more than others.
    const uint64_t equal = (budget + sharing - 1) / sharing;
    shares[i] = static_cast<uint32_t>(std::min(unread[i], equal));
    budget -= shares[i];
    --sharing;
  }
  return shares;
}

}  // namespace baton::decode
