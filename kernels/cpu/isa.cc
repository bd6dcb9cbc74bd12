#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"

namespace baton::kernels {
namespace {

constexpr Isa kAll[] = {Isa::kAuto, Isa::kScalar, Isa::kAvx2, Isa::kAvx512};

}  // namespace

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kAuto:
      return "auto";
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "unknown";
}

absl::StatusOr<Isa> ParseIsa(std::string_view name) {
  for (const Isa isa : kAll) {
    if (name == IsaName(isa)) return isa;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("instruction set '", std::string(name),
                   "': allowed are auto, scalar, avx2, avx512"));
}

bool IsSupported(Isa isa) {
  const bool v3 = __builtin_cpu_supports("avx2") &&
                  __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("f16c");
  switch (isa) {
    case Isa::kAuto:
    case Isa::kScalar:
    case Isa::kAvx2:
      return v3;
    case Isa::kAvx512:
      return v3 && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512vnni");
  }
  return false;
}

}  // namespace baton::kernels
