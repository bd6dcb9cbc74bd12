#ifndef BATON_TESTS_CONFORMANCE_EMULATED_AMX_H_
#define BATON_TESTS_CONFORMANCE_EMULATED_AMX_H_

#include "kernels/cpu/kernel_table.h"

namespace baton::kernels {

// The kernels of Isa::kAmx with tiles in plain code. On AVX-512, all but the
// six tile instructions is what AMX machines run.
// Requires: IsSupported(Isa::kAvx512).
const cpu::KernelTable& EmulatedAmxAvx512Kernels();

// The same source over scalar vectors, for any machine.
const cpu::KernelTable& EmulatedAmxScalarKernels();

}  // namespace baton::kernels

#endif  // BATON_TESTS_CONFORMANCE_EMULATED_AMX_H_
