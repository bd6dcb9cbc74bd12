#ifndef BATON_KERNELS_CPU_FLOAT_ENVIRONMENT_H_
#define BATON_KERNELS_CPU_FLOAT_ENVIRONMENT_H_

#include <immintrin.h>

namespace baton::kernels::cpu {

// Gives the calling thread the environment of exact-v1 (round to nearest even,
// denormals kept, exceptions masked) and restores the former one at the end.
class FloatEnvironment {
 public:
  FloatEnvironment() : saved_(_mm_getcsr()) {
    if (saved_ != kDefault) _mm_setcsr(kDefault);
  }
  ~FloatEnvironment() {
    if (saved_ != kDefault) _mm_setcsr(saved_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  static constexpr unsigned kDefault = 0x1f80;
  const unsigned saved_;
};

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_FLOAT_ENVIRONMENT_H_
