#ifndef BATON_TESTS_SIMULATION_PARTITIONS_H_
#define BATON_TESTS_SIMULATION_PARTITIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "common/base/monotonic_time.h"

namespace baton::simulation {

// Directions between processes in which nothing passes for a time. What was
// sent meanwhile arrives afterwards, in order, as TCP would have it: a message
// within an ordered stream is never lost alone.
class Partitions {
 public:
  // Of processes by name; "" stands for every process.
  void Block(std::string from, std::string to, MonotonicTime until);
  // When the direction opens; in the past when it is open.
  MonotonicTime OpensAt(std::string_view from, std::string_view to) const;
  void Heal() { blocked_.clear(); }

 private:
  struct Direction {
    std::string from, to;
    MonotonicTime until;
  };
  std::vector<Direction> blocked_;
};

}  // namespace baton::simulation

#endif  // BATON_TESTS_SIMULATION_PARTITIONS_H_
