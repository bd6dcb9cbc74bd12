#define BATON_ISA emulated_amx_isa

#include "tests/conformance/emulated_amx.h"

#include "kernels/cpu/simd/vector_scalar-inl.h"
// The kernels below are written in the vocabulary of the header above.
#include "kernels/cpu/simd/amx_linear-inl.h"

namespace baton::kernels {
namespace {

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

}  // namespace

const cpu::KernelTable& EmulatedAmxKernels() {
  static const cpu::KernelTable table = [] {
    cpu::KernelTable kernels = cpu::ScalarKernels();
    kernels.linear = [](const cpu::LinearWork& work) {
      cpu::BATON_ISA::LinearByTiles<EmulatedTiles>(work,
                                                   cpu::ScalarKernels().linear);
    };
    return kernels;
  }();
  return table;
}

}  // namespace baton::kernels
