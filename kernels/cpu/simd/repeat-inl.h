#ifndef BATON_KERNELS_CPU_SIMD_REPEAT_INL_H_
#define BATON_KERNELS_CPU_SIMD_REPEAT_INL_H_

namespace baton::kernels::cpu::BATON_ISA {

// step<0>(), step<1>(), .. step<n - 1>(). GCC keeps an array in registers only
// where every index into it is a constant from the start: the accumulators of a
// loop in which it is another loop's counter are stored and loaded around it.
template <int n, typename Step>
[[gnu::always_inline]] inline void Repeat(const Step& step) {
  if constexpr (n > 0) {
    Repeat<n - 1>(step);
    step.template operator()<n - 1>();
  }
}

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_REPEAT_INL_H_
