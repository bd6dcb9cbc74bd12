#define BATON_ISA scalar_isa

#include "kernels/cpu/simd/vector_scalar-inl.h"
// The kernels below are written in the vocabulary of the header above.
#include "kernels/cpu/simd/kernels-inl.h"

namespace baton::kernels::cpu {

const KernelTable& ScalarKernels() { return BATON_ISA::kTable; }

}  // namespace baton::kernels::cpu
