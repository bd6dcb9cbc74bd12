#ifndef BATON_KERNELS_REFERENCE_REDUCTION_H_
#define BATON_KERNELS_REFERENCE_REDUCTION_H_

#include <algorithm>
#include <cmath>

namespace baton::kernels::reference {

constexpr int kStripes = 16;

// Adds the stripes as a tree: i with i + 8, then + 4, + 2, + 1.
inline float SumStripes(float* stripes) {
  for (int width = kStripes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) stripes[i] += stripes[i + width];
  }
  return stripes[0];
}

// Σ x[i]: element i goes to stripe i % 16, in increasing order.
inline float StripedSum(const float* x, int n) {
  float stripes[kStripes] = {};
  for (int i = 0; i < n; ++i) stripes[i % kStripes] += x[i];
  return SumStripes(stripes);
}

// Σ x[i]², each step one FMA, in the same order.
inline float StripedSquareSum(const float* x, int n) {
  float stripes[kStripes] = {};
  for (int i = 0; i < n; ++i) {
    float& stripe = stripes[i % kStripes];
    stripe = std::fma(x[i], x[i], stripe);
  }
  return SumStripes(stripes);
}

}  // namespace baton::kernels::reference

#endif  // BATON_KERNELS_REFERENCE_REDUCTION_H_
