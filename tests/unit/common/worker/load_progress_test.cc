#include "common/worker/load_progress.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(LoadProgressTest, TellsEveryTwoSeconds) {
  const MonotonicTime start{};
  const auto at = [&](int ms) { return start + std::chrono::milliseconds(ms); };
  LoadProgress progress(start);
  constexpr uint64_t kTotal = 1'234'000'000;
  EXPECT_EQ(progress.Line(0, kTotal, at(1999)), std::nullopt);
  EXPECT_EQ(progress.Line(530'700'000, kTotal, at(2000)),
            "loading model: 43 % of 1.2 GB");
  EXPECT_EQ(progress.Line(600'000'000, kTotal, at(3999)), std::nullopt);
  EXPECT_EQ(progress.Line(kTotal - 1, kTotal, at(4100)),
            "loading model: 99 % of 1.2 GB");
}

TEST(LoadProgressTest, SaysNothingAtTheEndOrOfEmptyFiles) {
  LoadProgress progress(MonotonicTime{});
  const MonotonicTime late = MonotonicTime{} + std::chrono::hours(1);
  EXPECT_EQ(progress.Line(500, 500, late), std::nullopt);
  EXPECT_EQ(progress.Line(0, 0, late), std::nullopt);
}

}  // namespace
}  // namespace baton
