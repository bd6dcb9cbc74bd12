#include "kv_transfer/breach_report.h"

#include <gtest/gtest.h>

namespace baton::transfer {
namespace {

TEST(BreachReportTest, SaysItAtOnceThenNowAndThen) {
  BreachReport report;
  TransferCore::Counters counters;
  MonotonicTime now{std::chrono::hours(1)};
  EXPECT_EQ(report.Next(counters, now), std::nullopt);
  counters.refused_begins = 3;
  EXPECT_EQ(report.Next(counters, now),
            "kv_transfer: peers sent 3 tickets that are not good here and 0 "
            "damaged messages; 0 peers were cut off");
  EXPECT_EQ(report.Next(counters, now), std::nullopt);
  // A flood is one line per period, and none of it is forgotten.
  int lines = 0;
  for (int i = 0; i < 1000; ++i) {
    now += BreachReport::kPeriod / 1000;
    ++counters.refused_begins;
    counters.crc_failures = 2;
    counters.cut_off_peers = 1;
    const auto line = report.Next(counters, now);
    if (!line) continue;
    ++lines;
    EXPECT_EQ(*line,
              "kv_transfer: peers sent 1000 tickets that are not good here and "
              "2 damaged messages; 1 peers were cut off");
  }
  EXPECT_EQ(lines, 1);
  now += 2 * BreachReport::kPeriod;
  EXPECT_EQ(report.Next(counters, now), std::nullopt) << "nothing new";
}

}  // namespace
}  // namespace baton::transfer
