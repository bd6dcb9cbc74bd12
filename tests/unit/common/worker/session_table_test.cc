#include "common/worker/session_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton {
namespace {

using testing::HasSubstr;

v1::RouterHello Hello(uint64_t epoch, uint64_t session) {
  v1::RouterHello hello;
  hello.set_protocol_min(1);
  hello.set_protocol_max(1);
  hello.set_router_epoch(epoch);
  hello.set_session(session);
  return hello;
}

TEST(SessionTable, HigherNumberFencesTheOldSession) {
  SessionTable table(4);
  auto first = table.Admit(Hello(7, 1));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->protocol, 1u);
  EXPECT_FALSE(first->fenced.has_value());
  auto second = table.Admit(Hello(7, 5));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->fenced, first->session);
  EXPECT_NE(second->session, first->session);
  EXPECT_EQ(table.alive(), 1u);
  table.End(first->session);
  EXPECT_EQ(table.alive(), 1u) << "the fenced session's end changes nothing";
}

TEST(SessionTable, LateHelloIsRefusedEvenAfterTheEnd) {
  SessionTable table(4);
  auto session = table.Admit(Hello(7, 5));
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(table.Admit(Hello(7, 5)).status().code(),
            absl::StatusCode::kAborted);
  table.End(session->session);
  EXPECT_EQ(table.alive(), 0u);
  EXPECT_EQ(table.Admit(Hello(7, 4)).status().code(),
            absl::StatusCode::kAborted);
  auto next = table.Admit(Hello(7, 6));
  ASSERT_TRUE(next.ok());
  EXPECT_FALSE(next->fenced.has_value());
}

TEST(SessionTable, RoutersDoNotFenceEachOther) {
  SessionTable table(4);
  ASSERT_TRUE(table.Admit(Hello(7, 5)).ok());
  auto other = table.Admit(Hello(8, 1));
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->fenced.has_value());
  EXPECT_EQ(table.alive(), 2u);
}

TEST(SessionTable, IsBounded) {
  SessionTable table(2);
  ASSERT_TRUE(table.Admit(Hello(1, 1)).ok());
  auto second = table.Admit(Hello(2, 1));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(table.Admit(Hello(3, 1)).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(table.Admit(Hello(1, 2)).ok()) << "replaces its own";
  for (uint64_t epoch = 2; epoch < 1000; ++epoch) {
    table.End(second->session);
    second = table.Admit(Hello(epoch, 5));
    ASSERT_TRUE(second.ok()) << epoch << second.status();
  }
  EXPECT_EQ(table.alive(), 2u);
  EXPECT_EQ(table.Admit(Hello(1, 2)).status().code(),
            absl::StatusCode::kAborted)
      << "a live router's number is never forgotten";
}

TEST(SessionTable, MalformedHellosNameTheField) {
  SessionTable table(2);
  auto refused = [&](v1::RouterHello hello) {
    return std::string(table.Admit(hello).status().message());
  };
  EXPECT_THAT(refused(Hello(0, 1)), HasSubstr("hello.router_epoch"));
  EXPECT_THAT(refused(Hello(1, 0)), HasSubstr("hello.session"));
  v1::RouterHello hello = Hello(1, 1);
  hello.set_protocol_min(2);
  hello.set_protocol_max(3);
  EXPECT_THAT(refused(hello), HasSubstr("the router speaks 2..3"));
  hello = Hello(1, 1);
  hello.set_protocol_max(9);
  EXPECT_EQ(table.Admit(hello)->protocol, 1u);
  hello.set_router_id(std::string(129, 'x'));
  EXPECT_THAT(refused(hello), HasSubstr("hello.router_id: got 129 bytes"));
  EXPECT_EQ(table.alive(), 1u);
}

}  // namespace
}  // namespace baton
