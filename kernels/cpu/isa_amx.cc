#define BATON_ISA amx_isa

#include "kernels/cpu/simd/vector_avx512-inl.h"
// The kernels below are written in the vocabulary of the header above.
#include "kernels/cpu/simd/amx_linear-inl.h"
#include "kernels/cpu/simd/amx_tiles-inl.h"

namespace baton::kernels::cpu {

const KernelTable& AmxKernels() {
  static const KernelTable table = [] {
    KernelTable kernels = Avx512Kernels();
    kernels.linear = [](const LinearWork& work) {
      BATON_ISA::LinearByTiles<BATON_ISA::AmxTiles>(work,
                                                    Avx512Kernels().linear);
    };
    return kernels;
  }();
  return table;
}

}  // namespace baton::kernels::cpu
