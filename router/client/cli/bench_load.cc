#include "router/client/cli/bench_load.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace baton::cli {
namespace {

constexpr uint32_t kReservedIds = 256;

std::mt19937_64 Generator(uint64_t seed, uint64_t stream) {
  std::seed_seq sequence{
      static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
      static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  return std::mt19937_64(sequence);
}

// In (0, 1].
double UnitInterval(std::mt19937_64* generator) {
  return static_cast<double>(((*generator)() >> 11) + 1) * 0x1p-53;
}

}  // namespace

std::vector<Duration> PoissonArrivals(double requests_per_second, size_t count,
                                      uint64_t seed) {
  std::mt19937_64 generator = Generator(seed, ~uint64_t{0});
  std::vector<Duration> arrivals;
  arrivals.reserve(count);
  double seconds = 0;
  for (size_t i = 0; i < count; ++i) {
    arrivals.push_back(Duration(static_cast<int64_t>(seconds * 1e9)));
    seconds -= std::log(UnitInterval(&generator)) / requests_per_second;
  }
  return arrivals;
}

std::vector<uint32_t> RandomPrompt(size_t length, uint32_t vocabulary_size,
                                   uint64_t seed, size_t index) {
  std::mt19937_64 generator = Generator(seed, index);
  const uint32_t first = vocabulary_size >= 2 * kReservedIds ? kReservedIds : 0;
  std::vector<uint32_t> prompt(length);
  for (uint32_t& id : prompt) {
    id = first + static_cast<uint32_t>(generator() % (vocabulary_size - first));
  }
  return prompt;
}

size_t GeometricLength(size_t mean, size_t most, uint64_t seed, size_t index) {
  if (mean <= 1) return 1;
  // Another stream than that of the prompt.
  std::mt19937_64 generator = Generator(~seed, index);
  const double length = std::ceil(std::log(UnitInterval(&generator)) /
                                  std::log1p(-1.0 / static_cast<double>(mean)));
  return static_cast<size_t>(
      std::clamp(length, 1.0, static_cast<double>(most)));
}

}  // namespace baton::cli
