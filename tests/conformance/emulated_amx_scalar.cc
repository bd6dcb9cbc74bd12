#define BATON_ISA emulated_amx_scalar_isa

#include "kernels/cpu/simd/vector_scalar-inl.h"
#include "tests/conformance/emulated_amx.h"
#include "tests/conformance/emulated_tiles-inl.h"
// The kernels below are written in the vocabulary of the first header.
#include "kernels/cpu/simd/amx_linear-inl.h"

namespace baton::kernels {

const cpu::KernelTable& EmulatedAmxScalarKernels() {
  static const cpu::KernelTable table = [] {
    cpu::KernelTable kernels = cpu::ScalarKernels();
    kernels.linear = [](const cpu::LinearWork& work) {
      cpu::BATON_ISA::LinearByTiles<BATON_ISA::EmulatedTiles>(
          work, cpu::ScalarKernels().linear);
    };
    return kernels;
  }();
  return table;
}

}  // namespace baton::kernels
