#include "router/admission/service_counters.h"

#include <gtest/gtest.h>

#include "common/base/strings.h"

namespace baton::router {
namespace {

TEST(ServiceCountersTest, OneIdPerNameWhileRequestsLive) {
  ServiceCounters counters(10);
  const TenantId a = counters.Enter("a");
  EXPECT_EQ(counters.Enter("a"), a);
  EXPECT_NE(counters.Enter("b"), a);
  EXPECT_EQ(counters.active(), 2u);
  counters.Leave(a);
  EXPECT_EQ(counters.active(), 2u);
  counters.Leave(a);
  EXPECT_EQ(counters.active(), 1u);
}

TEST(ServiceCountersTest, ChargesRefundsAndLifts) {
  ServiceCounters counters(10);
  const TenantId a = counters.Enter("a");
  counters.Charge(a, 50);
  counters.Refund(a, 20);
  EXPECT_EQ(counters.service(a), 30u);
  counters.Refund(a, 1000);
  EXPECT_EQ(counters.service(a), 0u);
  counters.RaiseFloor(40);
  counters.RaiseFloor(10);
  counters.Lift(a);
  EXPECT_EQ(counters.service(a), 40u);
  counters.Charge(a, 5);
  counters.Lift(a);
  EXPECT_EQ(counters.service(a), 45u);
}

TEST(ServiceCountersTest, DebtsOfIdleTenantsAreRemembered) {
  ServiceCounters counters(10);
  TenantId a = counters.Enter("a");
  counters.Charge(a, 100);
  counters.Leave(a);
  EXPECT_EQ(counters.active(), 0u);
  EXPECT_EQ(counters.tracked(), 1u);
  a = counters.Enter("a");
  EXPECT_EQ(counters.service(a), 100u);
}

TEST(ServiceCountersTest, WhoOwesNothingIsForgotten) {
  ServiceCounters counters(10);
  const TenantId a = counters.Enter("a");
  counters.Charge(a, 100);
  counters.RaiseFloor(100);
  counters.Leave(a);
  EXPECT_EQ(counters.tracked(), 0u);
}

TEST(ServiceCountersTest, FindsWhomItKnows) {
  ServiceCounters counters(10);
  EXPECT_EQ(counters.Find("a"), TenantId());
  const TenantId a = counters.Enter("a");
  EXPECT_EQ(counters.Find("a"), a);
  EXPECT_EQ(counters.tracked(), 1u);
}

TEST(ServiceCountersTest, IdleTenantsAreBounded) {
  ServiceCounters counters(10);
  for (uint64_t i = 0; i < 1000; ++i) {
    const TenantId id = counters.Enter(StrCat("tenant-", i));
    counters.Charge(id, 1000 - i);
    counters.Leave(id);
    EXPECT_LE(counters.tracked(), 11u);
  }
  EXPECT_EQ(counters.service(counters.Enter("tenant-0")), 1000u)
      << "the largest debts stay";
  EXPECT_EQ(counters.service(counters.Enter("tenant-999")), 0u);
}

}  // namespace
}  // namespace baton::router
