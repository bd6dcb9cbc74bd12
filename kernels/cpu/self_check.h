#ifndef BATON_KERNELS_CPU_SELF_CHECK_H_
#define BATON_KERNELS_CPU_SELF_CHECK_H_

#include "absl/types/span.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/kernel_table.h"

namespace baton::kernels::cpu {

// Multiplies random rows with a random matrix of every quantised type, once
// with `table` and once in scalar code: whether all bits are equal. Takes some
// milliseconds. Requires: this machine can run the kernels.
bool MultipliesAsScalar(const KernelTable& table);

struct IsaCandidate {
  Isa isa;
  const KernelTable* kernels;
  bool checked;  // has to multiply as scalar code does
};

// The last of `candidates` whose check passes; `warn` hears of each one that
// was passed over. Requires: the first is not checked.
Isa SettleIsa(absl::Span<const IsaCandidate> candidates, WarnFunction warn);

// Why the AMX of a machine is of no use: empty when it is, or when there is
// none to use.
std::string_view AmxObstacle(bool present, bool saved, bool permitted);

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_SELF_CHECK_H_
