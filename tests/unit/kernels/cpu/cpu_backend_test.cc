#include "kernels/cpu/cpu_backend.h"

#include <string>

#include "gtest/gtest.h"

namespace baton::kernels {
namespace {

TEST(CpuBackendTest, NamesRoundTrip) {
  for (const Isa isa : {Isa::kAuto, Isa::kScalar, Isa::kAvx2, Isa::kAvx512}) {
    const auto parsed = ParseIsa(IsaName(isa));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, isa);
  }
}

TEST(CpuBackendTest, RefusesUnknownNames) {
  const auto parsed = ParseIsa("sse");
  EXPECT_TRUE(absl::IsInvalidArgument(parsed.status()));
  EXPECT_EQ(std::string(parsed.status().message()),
            "instruction set 'sse': allowed are auto, scalar, avx2, avx512");
}

TEST(CpuBackendTest, AutoTakesTheWidest) {
  const auto backend = MakeCpuBackend({});
  ASSERT_TRUE(backend.ok()) << backend.status();
  EXPECT_EQ((*backend)->name(),
            IsSupported(Isa::kAvx512) ? "cpu-avx512" : "cpu-avx2");
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

TEST(CpuBackendTest, RunsTheWidestInstructionSetOrExplainsItsAbsence) {
  const auto backend = MakeCpuBackend({.isa = Isa::kAvx512});
  if (IsSupported(Isa::kAvx512)) {
    ASSERT_TRUE(backend.ok()) << backend.status();
    EXPECT_EQ((*backend)->name(), "cpu-avx512");
    return;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(backend.status()));
  EXPECT_NE(std::string(backend.status().message()).find("'avx512'"),
            std::string::npos);
}

}  // namespace
}  // namespace baton::kernels
