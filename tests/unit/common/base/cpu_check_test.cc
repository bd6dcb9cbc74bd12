#include "common/base/cpu_check.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(CpuCheckTest, AcceptsTheMachineThatRunsTheTests) {
  RequireSupportedCpu();
  SUCCEED();
}

}  // namespace
}  // namespace baton
