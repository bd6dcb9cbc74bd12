#include "common/base/cpu_check.h"

#include <unistd.h>

#include <cstring>

namespace baton {
namespace {

void Print(const char* text) {
  if (write(STDERR_FILENO, text, strlen(text)) < 0) return;
}

}  // namespace

// Compiled for plain x86-64 (see CMakeLists.txt).
__attribute__((constructor(101))) void RequireSupportedCpu() {
  __builtin_cpu_init();
  const char* missing = nullptr;
  if (!__builtin_cpu_supports("avx2")) missing = "AVX2";
  if (!__builtin_cpu_supports("fma")) missing = "FMA";
  if (!__builtin_cpu_supports("f16c")) missing = "F16C";
  if (!__builtin_cpu_supports("bmi2")) missing = "BMI2";
  if (missing == nullptr) return;
  Print("this processor lacks ");
  Print(missing);
  Print(
      "; Baton needs x86-64-v3 (AVX2, FMA, F16C, BMI2: Intel Haswell, AMD "
      "Excavator or newer)\n");
  _exit(1);
}

}  // namespace baton
