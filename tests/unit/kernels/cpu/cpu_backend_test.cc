#include "kernels/cpu/cpu_backend.h"

#include <string>

#include "gtest/gtest.h"

namespace baton::kernels {
namespace {

TEST(CpuBackendTest, NamesRoundTrip) {
  EXPECT_EQ(*ParseIsa("auto"), Isa::kAuto);
  for (const Isa isa : kIsas) {
    const auto parsed = ParseIsa(IsaName(isa));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, isa);
  }
}

TEST(CpuBackendTest, RefusesUnknownNames) {
  const auto parsed = ParseIsa("sse");
  EXPECT_TRUE(absl::IsInvalidArgument(parsed.status()));
  EXPECT_EQ(std::string(parsed.status().message()),
            "instruction set 'sse': allowed are auto, scalar, avx2, avxvnni, "
            "avx512, amx");
}

TEST(CpuBackendTest, AutoTakesTheLastThatIsSupported) {
  const auto backend = MakeCpuBackend({});
  ASSERT_TRUE(backend.ok()) << backend.status();
  const char* expected = IsSupported(Isa::kAmx)       ? "cpu-amx"
                         : IsSupported(Isa::kAvx512)  ? "cpu-avx512"
                         : IsSupported(Isa::kAvxVnni) ? "cpu-avxvnni"
                                                      : "cpu-avx2";
  EXPECT_EQ((*backend)->name(), expected);
  EXPECT_EQ((*backend)->threads(), 1);
}

TEST(CpuBackendTest, RefusesThreadCountsOutOfRange) {
  for (const int threads : {0, -1, kMaxThreads + 1}) {
    const auto backend = MakeCpuBackend({.threads = threads});
    EXPECT_TRUE(absl::IsInvalidArgument(backend.status()));
    EXPECT_EQ(std::string(backend.status().message()),
              "threads: given " + std::to_string(threads) + ", allowed 1..256");
  }
}

TEST(CpuBackendTest, RunsAnInstructionSetOrExplainsItsAbsence) {
  for (const Isa isa : kIsas) {
    const auto backend = MakeCpuBackend({.isa = isa});
    const std::string name(IsaName(isa));
    if (IsSupported(isa)) {
      ASSERT_TRUE(backend.ok()) << backend.status();
      EXPECT_EQ((*backend)->name(), "cpu-" + name);
      continue;
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(backend.status()));
    EXPECT_NE(std::string(backend.status().message()).find("'" + name + "'"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace baton::kernels
