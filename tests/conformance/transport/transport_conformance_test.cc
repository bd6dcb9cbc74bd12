#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "tests/conformance/transport/transport_suite.h"

namespace baton::transfer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(TransportTest, NamesItself) {
  Node a;
  EXPECT_EQ(a.transport->name(), NameUnderTest());
  EXPECT_FALSE(a.transport->address().empty());
  EXPECT_LE(a.transport->address().size(), kMaxAddressBytes);
}

TEST(TransportTest, CarriesEverySize) {
  Node a;
  Node b;
  const LinkId link = a.Connect(b);
  std::vector<std::vector<std::byte>> payloads;
  for (const size_t size :
       {0,       1,       7,       8,         100,       255,      4095,
        4096,    4097,    8191,    8192,      8193,      65535,    65536,
        100'000, 262'144, 368'640, 1'048'576, 4'194'305, 8'388'608}) {
    payloads.push_back(Pattern(size, static_cast<uint32_t>(size)));
  }
  for (size_t i = 0; i < payloads.size(); ++i) {
    a.Send(link, "message " + std::to_string(i), payloads[i]);
  }
  ASSERT_TRUE(PollUntil({&a, &b}, [&] {
    return b.record.Complete() == payloads.size() &&
           a.record.sent.size() == payloads.size();
  }));
  for (size_t i = 0; i < payloads.size(); ++i) {
    const auto& received = b.record.messages[i];
    EXPECT_EQ(received.header, "message " + std::to_string(i));
    EXPECT_TRUE(received.payload == payloads[i]) << payloads[i].size();
  }
  for (const auto& [key, status] : a.record.sent) EXPECT_TRUE(status.ok());
}

TEST(TransportTest, CarriesHeadersOfEverySize) {
  Node a;
  Node b;
  const LinkId link = a.Connect(b);
  for (size_t size = 1; size <= kMaxHeaderBytes; ++size) {
    a.Send(link, std::string(size, static_cast<char>(size)), {});
  }
  ASSERT_TRUE(PollUntil(
      {&a, &b}, [&] { return b.record.Complete() == kMaxHeaderBytes; }));
  for (size_t size = 1; size <= kMaxHeaderBytes; ++size) {
    EXPECT_EQ(b.record.messages[size - 1].header,
              std::string(size, static_cast<char>(size)));
  }
  const std::string long_header(kMaxHeaderBytes + 1, 'x');
  EXPECT_EQ(a.transport
                ->Send(link, SendId(9999),
                       {reinterpret_cast<const std::byte*>(long_header.data()),
                        long_header.size()},
                       {})
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(TransportTest, KeepsHeadersInOrder) {
  Node a;
  Node b;
  const LinkId link = a.Connect(b);
  std::mt19937 random(1);
  constexpr size_t kSizes[] = {0, 10, 3000, 9000, 40'000, 400'000};
  std::vector<std::vector<std::byte>> payloads;
  for (const size_t size : kSizes) payloads.push_back(Pattern(size, 1));
  constexpr int kMessages = 600;
  int posted = 0;
  ASSERT_TRUE(PollUntil({&a, &b}, [&] {
    for (int burst = random() % 8; burst > 0 && posted < kMessages; --burst) {
      a.Send(link, std::to_string(posted++), payloads[random() % 6]);
    }
    return b.record.Complete() == kMessages;
  }));
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(b.record.messages[i].header, std::to_string(i));
  }
}

TEST(TransportTest, AnswersOnTheSameLink) {
  Node a;
  Node b;
  const LinkId link = a.Connect(b);
  const auto there = Pattern(300'000, 1);
  const auto back = Pattern(500'000, 2);
  a.Send(link, "there", there);
  ASSERT_TRUE(PollUntil({&a, &b}, [&] { return b.record.Complete() == 1; }));
  b.Send(b.record.messages[0].link, "back", back);
  ASSERT_TRUE(PollUntil({&a, &b}, [&] { return a.record.Complete() == 1; }));
  EXPECT_EQ(a.record.messages[0].link, link);
  EXPECT_EQ(a.record.messages[0].header, "back");
  EXPECT_TRUE(a.record.messages[0].payload == back);
}

TEST(TransportTest, ReachesItself) {
  Node a;
  const LinkId link = a.Connect(a);
  const auto payload = Pattern(200'000, 3);
  a.Send(link, "to myself", payload);
  ASSERT_TRUE(PollUntil({&a}, [&] { return a.record.Complete() == 1; }));
  EXPECT_NE(a.record.messages[0].link, link);
  EXPECT_TRUE(a.record.messages[0].payload == payload);
}

TEST(TransportTest, KeepsManyLinksApart) {
  Node hub;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::vector<std::byte>> payloads;
  for (int i = 0; i < 6; ++i) {
    nodes.push_back(std::make_unique<Node>());
    payloads.push_back(Pattern(50'000 + i, i));
    for (int l = 0; l < 4; ++l) {
      const LinkId link = nodes[i]->Connect(hub);
      for (int m = 0; m < 3; ++m) {
        nodes[i]->Send(link, std::to_string(i), payloads[i]);
      }
    }
  }
  ASSERT_TRUE(PollUntil({&hub}, [&] {
    for (auto& node : nodes) node->Poll();
    return hub.record.Complete() == 72;
  }));
  std::map<LinkId, std::set<std::string>> headers;
  for (const auto& received : hub.record.messages) {
    headers[received.link].insert(received.header);
    const auto& expected = payloads[std::stoul(received.header)];
    ASSERT_TRUE(received.payload == expected);
  }
  EXPECT_EQ(headers.size(), 24u);
  for (const auto& [link, of_link] : headers) EXPECT_EQ(of_link.size(), 1u);
}

TEST(TransportTest, LetsGoOfMemoryWithOnSent) {
  Node a;
  Node b;
  const LinkId link = a.Connect(b);
  std::vector<std::vector<std::byte>> memory;
  for (const size_t size : {100, 5000, 9000, 70'000, 1'000'000}) {
    memory.push_back(Pattern(size, 9));
  }
  const auto originals = memory;
  a.record.on_sent = [&](SendId send) {
    std::ranges::fill(memory[send.value() - 1], std::byte{0xee});
  };
  for (const auto& payload : memory)
    a.Send(link, "m" + std::to_string(payload.size()), payload);
  ASSERT_TRUE(PollUntil({&a, &b}, [&] { return b.record.Complete() == 5; }));
  for (size_t i = 0; i < originals.size(); ++i) {
    EXPECT_TRUE(b.record.messages[i].payload == originals[i]);
  }
}

TEST(TransportTest, DiscardsPayloadsWithoutAPlace) {
  Node a;
  Node b;
  b.record.discard = [](const std::string& header) { return header == "no"; };
  const LinkId link = a.Connect(b);
  std::vector<std::vector<std::byte>> payloads;
  for (const size_t size : {50, 5000, 20'000, 400'000, 2'000'000}) {
    payloads.push_back(Pattern(size, 4));
  }
  for (const auto& payload : payloads) {
    a.Send(link, "no", payload);
    a.Send(link, "yes", payload);
  }
  ASSERT_TRUE(PollUntil({&a, &b}, [&] {
    return b.record.Complete() == 10 && a.record.sent.size() == 10;
  }));
  for (size_t i = 0; i < 10; ++i) {
    const auto& received = b.record.messages[i];
    EXPECT_EQ(received.announced, payloads[i / 2].size());
    EXPECT_EQ(received.payload.empty(), i % 2 == 0);
    EXPECT_TRUE(i % 2 == 0 || received.payload == payloads[i / 2]);
  }
}

// Whichever side closes: every send is reported, then the link is over on both
// sides, and from then on nobody touches the memory.
void CloseInMidFlight(bool by_receiver, int polls_before) {
  SCOPED_TRACE(polls_before);
  Node a;
  Node b;
  const LinkId link = a.Connect(b);
  a.Send(link, "first", {});
  ASSERT_TRUE(PollUntil({&a, &b}, [&] { return b.record.Complete() == 1; }));
  const LinkId other = b.record.messages[0].link;
  std::vector<std::vector<std::byte>> payloads;
  for (int i = 0; i < 20; ++i) {
    payloads.push_back(Pattern(i % 3 == 0 ? 2000 : 1 << 20, i));
  }
  for (int i = 0; i < 20; ++i) a.Send(link, std::to_string(i), payloads[i]);
  for (int i = 0; i < polls_before; ++i) (i % 2 ? a : b).Poll();
  if (by_receiver) {
    b.transport->Close(other);
    b.transport->Close(other);
  } else {
    a.transport->Close(link);
    a.transport->Close(link);
  }
  ASSERT_TRUE(PollUntil({&a, &b}, [&] {
    return a.record.closed.contains(link) && b.record.closed.contains(other);
  }));
  EXPECT_EQ(a.record.sent.size(), 21u);
  EXPECT_EQ(
      a.transport
          ->Send(link, SendId(99), absl::MakeSpan(payloads[0]).first(5), {})
          .code(),
      absl::StatusCode::kNotFound);
  for (auto& received : b.record.messages) {
    std::ranges::fill(received.payload, std::byte{0x77});
  }
  PollFor({&a, &b}, milliseconds(30));
  for (const auto& received : b.record.messages) {
    for (const std::byte byte : received.payload) {
      ASSERT_EQ(byte, std::byte{0x77}) << "written after OnClosed";
    }
  }
}

TEST(TransportTest, ClosesByForceInMidFlight) {
  for (const int polls : {0, 1, 2, 5, 20, 60}) {
    CloseInMidFlight(/*by_receiver=*/false, polls);
    CloseInMidFlight(/*by_receiver=*/true, polls);
  }
}

TEST(TransportTest, OneLinkOverLeavesTheOthers) {
  Node a;
  Node b;
  const LinkId first = a.Connect(b);
  const LinkId second = a.Connect(b);
  const auto payload = Pattern(100'000, 5);
  a.Send(first, "first", payload);
  a.Send(second, "second", payload);
  ASSERT_TRUE(PollUntil({&a, &b}, [&] { return b.record.Complete() == 2; }));
  a.transport->Close(first);
  ASSERT_TRUE(PollUntil({&a, &b}, [&] {
    return a.record.closed.size() == 1 && b.record.closed.size() == 1;
  }));
  for (int i = 0; i < 10; ++i) a.Send(second, "again", payload);
  ASSERT_TRUE(PollUntil({&a, &b}, [&] { return b.record.Complete() == 12; }));
}

TEST(TransportTest, RefusesMalformedAddresses) {
  Node a;
  Node b;
  std::vector<std::string> bad = {"", "x", std::string(5000, 'a'),
                                  "tcp://somewhere", std::string(200, '\0')};
  const std::string good = b.transport->address();
  for (size_t i = 0; i < good.find(':'); ++i) {
    bad.push_back(good);
    bad.back()[i] ^= 1;
  }
  for (size_t n = 0; n <= good.find(':'); ++n) bad.push_back(good.substr(0, n));
  for (const std::string& address : bad) {
    EXPECT_EQ(a.transport->Connect(address).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(TransportTest, ReportsAPeerThatIsGoneBeforeTheLink) {
  Node a;
  std::string address;
  {
    Node gone;
    address = gone.transport->address();
  }
  const auto link = a.transport->Connect(address);
  ASSERT_TRUE(link.ok()) << link.status();
  ASSERT_TRUE(PollUntil({&a}, [&] { return a.record.closed.contains(*link); }));
}

TEST(TransportTest, ReportsAPeerThatGoes) {
  Node a;
  LinkId link;
  const auto payload = Pattern(1 << 20, 6);
  {
    Node b;
    link = a.Connect(b);
    a.Send(link, "first", payload);
    ASSERT_TRUE(PollUntil({&a, &b}, [&] { return b.record.Complete() == 1; }));
    for (int i = 0; i < 8; ++i) a.Send(link, "more", payload);
    b.Poll();
  }
  ASSERT_TRUE(PollUntil({&a}, [&] { return a.record.closed.contains(link); }));
  EXPECT_EQ(a.record.sent.size(), 9u);
}

TEST(TransportTest, TakesManySendsWhileThePeerSleeps) {
  Node a;
  Node b;
  const LinkId link = a.Connect(b);
  a.Send(link, "hello", {});
  ASSERT_TRUE(PollUntil({&a, &b}, [&] { return b.record.Complete() == 1; }));
  const auto small = Pattern(500, 7);
  const auto large = Pattern(16'384, 8);
  constexpr int kMessages = 2000;
  for (int i = 0; i < kMessages; ++i) {
    a.Send(link, std::to_string(i), i % 2 ? small : large);
    a.Poll();
  }
  EXPECT_EQ(b.record.Complete(), 1u);
  ASSERT_TRUE(PollUntil({&a, &b},
                        [&] { return b.record.Complete() == kMessages + 1; }));
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(b.record.messages[i + 1].header, std::to_string(i));
    ASSERT_TRUE(b.record.messages[i + 1].payload == (i % 2 ? small : large));
  }
}

TEST(TransportTest, WakeEndsWait) {
  Node a;
  const MonotonicTime start = MonotonicNow();
  a.transport->Wake();
  a.transport->Wait(seconds(20));
  std::thread waker([&] {
    std::this_thread::sleep_for(milliseconds(20));
    a.transport->Wake();
  });
  // Work of the transport's own may end a wait early.
  while (MonotonicNow() - start < milliseconds(20)) {
    a.transport->Wait(seconds(20));
    a.Poll();
  }
  waker.join();
  EXPECT_LT(MonotonicNow() - start, seconds(15));
}

TEST(TransportTest, WaitEndsWithItsTime) {
  Node a;
  const MonotonicTime start = MonotonicNow();
  while (MonotonicNow() - start < milliseconds(50)) {
    a.transport->Wait(milliseconds(10));
    a.Poll();
  }
  EXPECT_LT(MonotonicNow() - start, seconds(10));
}

TEST(TransportTest, TrafficEndsWait) {
  Node a;
  Node b;
  constexpr int kRounds = 50;
  const auto payload = Pattern(100'000, 10);
  std::thread receiver([&] {
    while (b.record.Complete() < kRounds) {
      const size_t before = b.record.messages.size();
      b.Poll();
      if (b.record.messages.size() == before) b.transport->Wait(seconds(1));
    }
    // The answers of the last rendezvous must leave.
    for (int i = 0; i < 100; ++i) b.Poll();
  });
  const LinkId link = a.Connect(b);
  const MonotonicTime start = MonotonicNow();
  for (int i = 0; i < kRounds; ++i) {
    a.Send(link, std::to_string(i), payload);
    while (a.record.sent.size() < static_cast<size_t>(i + 1) &&
           MonotonicNow() - start < seconds(60)) {
      a.Poll();
      if (!a.transport->Progress(&a.record)) a.transport->Wait(milliseconds(5));
    }
  }
  receiver.join();
  // Every round would take a second if only the time-out ended the waits.
  EXPECT_LT(MonotonicNow() - start, seconds(kRounds / 2));
}

}  // namespace
}  // namespace baton::transfer
