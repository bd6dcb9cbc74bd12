#ifndef BATON_TESTS_CONFORMANCE_EMULATED_TILES_INL_H_
#define BATON_TESTS_CONFORMANCE_EMULATED_TILES_INL_H_

#include <cstdint>

namespace baton::kernels::BATON_ISA {

// The tiles of amx_linear-inl.h in plain code.
class EmulatedTiles {
 public:
  explicit EmulatedTiles(int depth) : depth_(depth) {}

  // What tileloadd, tdpbssd and tilestored do.
  template <int kSlot>
  void Multiply(const int8_t* a, int64_t a_stride, const int8_t* b,
                int32_t* c) const {
    for (int r = 0; r < 16; ++r) {
      for (int o = 0; o < 16; ++o) {
        int32_t sum = 0;
        for (int k = 0; k < depth_; ++k) {
          sum += a[r * a_stride + k] * b[k / 4 * 64 + 4 * o + k % 4];
        }
        c[16 * r + o] = sum;
      }
    }
  }

 private:
  const int depth_;
};

}  // namespace baton::kernels::BATON_ISA

#endif  // BATON_TESTS_CONFORMANCE_EMULATED_TILES_INL_H_
