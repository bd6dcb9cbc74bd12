#ifndef BATON_TESTS_CONFORMANCE_EMULATED_AMX_H_
#define BATON_TESTS_CONFORMANCE_EMULATED_AMX_H_

#include "kernels/cpu/kernel_table.h"

namespace baton::kernels {

// The kernels of Isa::kAmx for any machine: linear products from the same
// source over tiles in plain code, all else scalar.
const cpu::KernelTable& EmulatedAmxKernels();

}  // namespace baton::kernels

#endif  // BATON_TESTS_CONFORMANCE_EMULATED_AMX_H_
