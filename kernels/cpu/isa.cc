#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/self_check.h"

namespace baton::kernels {
namespace {

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers Cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

bool HasV3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt");
}

bool HasAvxVnni() {
  constexpr uint32_t kAvxVnni = 1u << 4;
  return HasV3() && (Cpuid(7, 1).a & kAvxVnni) != 0;
}

bool HasAvx512() {
  return HasV3() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

__attribute__((target("xsave"))) bool SystemSavesTiles() {
  constexpr uint64_t kTileState = uint64_t{3} << 17;  // configuration, data
  return (_xgetbv(0) & kTileState) == kTileState;
}

struct Amx {
  bool present;
  bool saved;
  bool permitted;
};

// Asks for permission only what may be given: the rest would be an error.
const Amx& FindAmx() {
  constexpr uint32_t kAmxTileAndInt8 = uint32_t{3} << 24;
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  static const Amx amx = [] {
    Amx found = {};
    found.present =
        HasAvx512() && (Cpuid(7, 0).d & kAmxTileAndInt8) == kAmxTileAndInt8;
    found.saved = found.present && SystemSavesTiles();
    found.permitted = found.saved && syscall(SYS_arch_prctl, kRequestPermission,
                                             kTileData) == 0;
    return found;
  }();
  return amx;
}

}  // namespace

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kAuto:
      return "auto";
    case Isa::kScalar:
      return "scalar";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvxVnni:
      return "avxvnni";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAmx:
      return "amx";
  }
  return "unknown";
}

absl::StatusOr<Isa> ParseIsa(std::string_view name) {
  if (name == IsaName(Isa::kAuto)) return Isa::kAuto;
  for (const Isa isa : kIsas) {
    if (name == IsaName(isa)) return isa;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("instruction set '", std::string(name),
                   "': allowed are auto, scalar, avx2, avxvnni, avx512, amx"));
}

bool IsSupported(Isa isa) {
  switch (isa) {
    case Isa::kAuto:
    case Isa::kScalar:
    case Isa::kAvx2:
      return HasV3();
    case Isa::kAvxVnni:
      return HasAvxVnni();
    case Isa::kAvx512:
      return HasAvx512();
    case Isa::kAmx:
      return FindAmx().permitted;
  }
  return false;
}

std::string_view AmxObstacle() {
  const Amx& amx = FindAmx();
  return cpu::AmxObstacle(amx.present, amx.saved, amx.permitted);
}

}  // namespace baton::kernels
