#include "tests/simulation/sim_transport.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton::simulation {
namespace {

using transfer::LinkId;
using transfer::SendId;

struct Side : transfer::TransportHandler {
  absl::Span<std::byte> OnHeader(LinkId link,
                                 absl::Span<const std::byte> header,
                                 size_t payload_bytes) override {
    last_link = link;
    headers.push_back(static_cast<int>(header[0]));
    if (payload_bytes == 0) return {};
    return absl::MakeSpan(memory).subspan(0, payload_bytes);
  }
  void OnMessage(LinkId, absl::Span<const std::byte> header,
                 absl::Span<const std::byte>) override {
    messages.push_back(static_cast<int>(header[0]));
  }
  void OnSent(LinkId, SendId, const absl::Status& status) override {
    sent.push_back(status.code());
  }
  void OnClosed(LinkId, const absl::Status&) override { ++closed; }

  LinkId last_link;
  std::vector<int> headers;
  std::vector<int> messages;
  std::vector<absl::StatusCode> sent;
  int closed = 0;
  std::vector<std::byte> memory = std::vector<std::byte>(64);
};

class SimTransportTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    NetworkFaults faults;
    faults.completions_in_order = GetParam() % 2 == 0;
    events = std::make_unique<EventQueue>(GetParam());
    network = std::make_unique<SimNetwork>(events.get(), &partitions,
                                           Random(GetParam()), faults);
    a = network->NewTransport("a", "a", [] {});
    b = network->NewTransport("b", "b", [] {});
  }

  bool Step() {
    const bool any = events->RunNext();
    if (a) a->Progress(&at_a);
    if (b) b->Progress(&at_b);
    return any;
  }
  void RunAll() {
    while (Step()) {
    }
  }

  std::unique_ptr<EventQueue> events;
  Partitions partitions;
  std::unique_ptr<SimNetwork> network;
  std::unique_ptr<SimTransport> a, b;
  Side at_a, at_b;
};

TEST_P(SimTransportTest, HeadersArriveInOrderAndEverySendIsReported) {
  const LinkId link = *a->Connect("b");
  std::vector<std::vector<std::byte>> headers;
  for (int i = 0; i < 20; ++i) headers.push_back({std::byte(i)});
  const std::vector<std::byte> payload(16, std::byte{7});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(a->Send(link, SendId(i), headers[i],
                        i % 2 ? absl::MakeConstSpan(payload)
                              : absl::Span<const std::byte>())
                    .ok());
  }
  RunAll();
  std::vector<int> order;
  for (int i = 0; i < 20; ++i) order.push_back(i);
  EXPECT_EQ(at_b.headers, order);
  if (GetParam() % 2 == 0) {
    EXPECT_EQ(at_b.messages, order);
  } else {
    EXPECT_THAT(at_b.messages, ::testing::UnorderedElementsAreArray(order));
  }
  EXPECT_EQ(at_a.sent.size(), 20u);
  EXPECT_TRUE(network->Claims(a.get()).empty());
  EXPECT_TRUE(network->Claims(b.get()).empty());
}

TEST_P(SimTransportTest, PayloadIsWrittenAfterOnHeader) {
  const LinkId link = *a->Connect("b");
  const std::vector<std::byte> header = {std::byte{1}};
  const std::vector<std::byte> payload(64, std::byte{7});
  ASSERT_TRUE(a->Send(link, SendId(1), header, payload).ok());
  while (at_b.headers.empty()) ASSERT_TRUE(Step());
  EXPECT_EQ(at_b.memory[0], std::byte{0});
  EXPECT_FALSE(network->Claims(b.get()).empty());
  RunAll();
  EXPECT_EQ(at_b.memory[63], std::byte{7});
  EXPECT_EQ(at_b.messages.size(), 1u);
}

TEST_P(SimTransportTest, NothingIsWrittenAfterOnClosed) {
  const LinkId link = *a->Connect("b");
  const std::vector<std::byte> header = {std::byte{1}};
  const std::vector<std::byte> payload(64, std::byte{7});
  ASSERT_TRUE(a->Send(link, SendId(1), header, payload).ok());
  while (at_b.headers.empty()) ASSERT_TRUE(Step());
  b->Close(at_b.last_link);
  while (at_b.closed == 0) ASSERT_TRUE(Step());
  std::fill(at_b.memory.begin(), at_b.memory.end(), std::byte{3});
  RunAll();
  EXPECT_THAT(at_b.memory, ::testing::Each(std::byte{3}));
  EXPECT_EQ(at_a.closed, 1);
  EXPECT_EQ(at_a.sent.size(), 1u);
}

TEST_P(SimTransportTest, DeathOfThePeerClosesTheLink) {
  const LinkId link = *a->Connect("b");
  const std::vector<std::byte> header = {std::byte{1}};
  ASSERT_TRUE(a->Send(link, SendId(1), header, {}).ok());
  b.reset();
  RunAll();
  EXPECT_EQ(at_a.closed, 1);
  EXPECT_EQ(at_a.sent.size(), 1u);
  EXPECT_EQ(a->Send(link, SendId(2), header, {}).code(),
            absl::StatusCode::kNotFound);
}

TEST_P(SimTransportTest, UnknownPeerClosesTheLink) {
  ASSERT_TRUE(a->Connect("nobody").ok());
  EXPECT_EQ(a->Connect("").status().code(), absl::StatusCode::kInvalidArgument);
  RunAll();
  EXPECT_EQ(at_a.closed, 1);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimTransportTest, ::testing::Range(1, 41));

}  // namespace
}  // namespace baton::simulation
