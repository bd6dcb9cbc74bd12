#define BATON_ISA avx512_isa

#include "kernels/cpu/simd/attention_avx512-inl.h"
#include "kernels/cpu/simd/vector_avx512-inl.h"
// The kernels below are written in the vocabulary of the headers above.
#include "kernels/cpu/simd/kernels-inl.h"

namespace baton::kernels::cpu {

const KernelTable& Avx512Kernels() { return BATON_ISA::kTable; }

}  // namespace baton::kernels::cpu
