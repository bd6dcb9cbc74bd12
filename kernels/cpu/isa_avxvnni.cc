#define BATON_ISA avxvnni_isa

#include "kernels/cpu/simd/dot_avxvnni-inl.h"
#include "kernels/cpu/simd/vector_avx2-inl.h"
// The kernels below are written in the vocabulary of the headers above.
#include "kernels/cpu/simd/kernels-inl.h"

namespace baton::kernels::cpu {

const KernelTable& AvxVnniKernels() { return BATON_ISA::kTable; }

}  // namespace baton::kernels::cpu
