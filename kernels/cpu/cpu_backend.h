#ifndef BATON_KERNELS_CPU_CPU_BACKEND_H_
#define BATON_KERNELS_CPU_CPU_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/api/backend.h"

namespace baton::kernels {

enum class Isa : uint8_t { kAuto, kScalar, kAvx2, kAvxVnni, kAvx512, kAmx };

// All but kAuto.
constexpr Isa kIsas[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512,
                         Isa::kAmx};

// "auto", "scalar", "avx2", "avxvnni", "avx512", "amx".
std::string_view IsaName(Isa isa);

// INVALID_ARGUMENT naming the accepted names.
absl::StatusOr<Isa> ParseIsa(std::string_view name);

// Whether this machine and its operating system run `isa`: kAvx2 needs AVX2,
// FMA and F16C; kAvxVnni also AVX-VNNI; kAvx512 also AVX-512 F, BW, DQ, VL and
// VNNI; kAmx all of kAvx512, AMX-TILE and AMX-INT8. The first question about
// kAmx asks the kernel to let this process use tiles.
bool IsSupported(Isa isa);

// Why this machine's AMX cannot be used although it has it; else empty.
std::string_view AmxObstacle();

using WarnFunction = void (*)(std::string_view message);
void WarnOnStandardError(std::string_view message);

struct CpuOptions {
  // kAuto: the last of kIsas that is supported and, for kAmx, passes its check
  // against scalar code; else `warn` says why not.
  Isa isa = Isa::kAuto;
  int threads = 1;  // 1..kMaxThreads, the calling thread included
  WarnFunction warn = WarnOnStandardError;
};

constexpr int kMaxThreads = 256;

// A backend named "cpu-scalar", "cpu-avx2" and so on. Its threads sleep
// between calls; the destructor joins them. INVALID_ARGUMENT for a thread count
// out of range, FAILED_PRECONDITION when the machine lacks the instruction set,
// INTERNAL when AMX was asked for and fails its check.
absl::StatusOr<std::unique_ptr<Backend>> MakeCpuBackend(
    const CpuOptions& options);

// Memory that a packed matrix of this shape takes.
// Requires: ValidateShape(shape) is OK.
size_t CpuPackedBytes(const MatrixShape& shape);

}  // namespace baton::kernels

#endif  // BATON_KERNELS_CPU_CPU_BACKEND_H_
