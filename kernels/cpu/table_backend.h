#ifndef BATON_KERNELS_CPU_TABLE_BACKEND_H_
#define BATON_KERNELS_CPU_TABLE_BACKEND_H_

#include <memory>
#include <string_view>

#include "kernels/api/backend.h"
#include "kernels/cpu/kernel_table.h"

namespace baton::kernels {

// The CPU backend over any kernels, named "cpu-<isa_name>". `table` outlives
// it. Requires: threads is 1..kMaxThreads, the machine can run the kernels.
std::unique_ptr<Backend> MakeTableBackend(std::string_view isa_name,
                                          const cpu::KernelTable& table,
                                          int threads);

}  // namespace baton::kernels

#endif  // BATON_KERNELS_CPU_TABLE_BACKEND_H_
