#include "tests/simulation/partitions.h"

#include <algorithm>
#include <utility>

namespace baton::simulation {

void Partitions::Block(std::string from, std::string to, MonotonicTime until) {
  blocked_.push_back({std::move(from), std::move(to), until});
}

MonotonicTime Partitions::OpensAt(std::string_view from,
                                  std::string_view to) const {
  MonotonicTime opens{};
  for (const Direction& direction : blocked_) {
    if ((direction.from.empty() || direction.from == from) &&
        (direction.to.empty() || direction.to == to)) {
      opens = std::max(opens, direction.until);
    }
  }
  return opens;
}

}  // namespace baton::simulation
