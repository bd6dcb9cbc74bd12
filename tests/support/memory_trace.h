#ifndef BATON_TESTS_SUPPORT_MEMORY_TRACE_H_
#define BATON_TESTS_SUPPORT_MEMORY_TRACE_H_

#include <cstddef>
#include <utility>
#include <vector>

namespace baton::testing {

// Resident memory of one process over time.
class MemoryTrace {
 public:
  void Add(double seconds, double kib) { points_.push_back({seconds, kib}); }

  // Least squares over the second half, when caches are warm, times its
  // length.
  double GrowthKib() const {
    const size_t first = points_.size() / 2;
    const auto n = static_cast<double>(points_.size() - first);
    if (n < 3) return 0;
    double x = 0, y = 0, xx = 0, xy = 0;
    for (size_t i = first; i < points_.size(); ++i) {
      x += points_[i].first;
      y += points_[i].second;
      xx += points_[i].first * points_[i].first;
      xy += points_[i].first * points_[i].second;
    }
    const double slope = (n * xy - x * y) / (n * xx - x * x);
    return slope * (points_.back().first - points_[first].first);
  }
  double last_kib() const {
    return points_.empty() ? 0 : points_.back().second;
  }

 private:
  std::vector<std::pair<double, double>> points_;
};

}  // namespace baton::testing

#endif  // BATON_TESTS_SUPPORT_MEMORY_TRACE_H_
