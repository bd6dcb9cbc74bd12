#include "tests/simulation/virtual_time.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/check.h"

namespace baton::simulation {
namespace {

uint64_t SplitMix64(uint64_t& state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) word = SplitMix64(seed);
}

uint64_t Random::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Random::Below(uint64_t bound) {
  BATON_CHECK(bound > 0);
  return Next() % bound;
}

uint64_t Random::Between(uint64_t low, uint64_t high) {
  return low + Below(high - low + 1);
}

double Random::Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

bool Random::Chance(double probability) { return Unit() < probability; }

Duration Random::Between(Duration low, Duration high) {
  return Duration(
      static_cast<int64_t>(Between(static_cast<uint64_t>(low.count()),
                                   static_cast<uint64_t>(high.count()))));
}

Random Random::Fork() { return Random(Next()); }

// Time starts well after the clock's epoch, so that "long ago" is a valid time.
EventQueue::EventQueue(uint64_t seed)
    : random_(seed), now_(std::chrono::hours(1)) {}

void EventQueue::At(MonotonicTime when, Task task) {
  heap_.push_back({std::max(when, now_), random_.Next(), std::move(task)});
  std::push_heap(heap_.begin(), heap_.end(), Later());
}

bool EventQueue::RunNext() {
  if (heap_.empty()) return false;
  std::pop_heap(heap_.begin(), heap_.end(), Later());
  Entry entry = std::move(heap_.back());
  heap_.pop_back();
  now_ = entry.when;
  ++tasks_run_;
  entry.task();
  return true;
}

MonotonicTime EventQueue::next() const {
  return heap_.empty() ? kNever : heap_.front().when;
}

}  // namespace baton::simulation
