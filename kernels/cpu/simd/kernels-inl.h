#ifndef BATON_KERNELS_CPU_SIMD_KERNELS_INL_H_
#define BATON_KERNELS_CPU_SIMD_KERNELS_INL_H_

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/simd/attention-inl.h"
#include "kernels/cpu/simd/elementwise-inl.h"
#include "kernels/cpu/simd/int8_head-inl.h"
#include "kernels/cpu/simd/linear-inl.h"

namespace baton::kernels::cpu::BATON_ISA {

constexpr KernelTable kTable = {
    .quantize_row = QuantizeRow,
    .linear = Linear,
    .attention = Attention,
    .merge_attention = MergeAttention,
    .rms_norm_row = RmsNormRow,
    .silu_mul = SiluMul,
    .round_to_f16 = RoundToF16,
    .quantize_head = QuantizeHead,
    .hadamard = Hadamard,
    .finite_row = FiniteRow,
    .max_and_exp_sum = MaxAndExpSum,
};

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_KERNELS_INL_H_
