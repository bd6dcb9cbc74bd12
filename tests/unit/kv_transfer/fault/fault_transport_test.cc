#include "kv_transfer/fault/fault_transport.h"

#include <gtest/gtest.h>

#include "tests/unit/kv_transfer/fake_network.h"

namespace baton::transfer {
namespace {

// Lets a test keep what FaultTransport owns.
class Borrowed final : public Transport {
 public:
  explicit Borrowed(Transport* to) : to_(to) {}
  std::string_view name() const override { return to_->name(); }
  std::string address() const override { return to_->address(); }
  absl::StatusOr<LinkId> Connect(std::string_view address) override {
    return to_->Connect(address);
  }
  absl::Status Send(LinkId link, SendId send,
                    absl::Span<const std::byte> header,
                    absl::Span<const std::byte> payload) override {
    return to_->Send(link, send, header, payload);
  }
  void Close(LinkId link) override { to_->Close(link); }
  bool Progress(TransportHandler* handler) override {
    return to_->Progress(handler);
  }
  void Wait(Duration timeout) override { to_->Wait(timeout); }
  void Wake() override { to_->Wake(); }

 private:
  Transport* to_;
};

class Listener final : public TransportHandler {
 public:
  absl::Span<std::byte> OnHeader(LinkId, absl::Span<const std::byte>,
                                 size_t) override {
    return {};
  }
  void OnMessage(LinkId, absl::Span<const std::byte>,
                 absl::Span<const std::byte>) override {}
  void OnSent(LinkId, SendId send, const absl::Status& status) override {
    EXPECT_FALSE(closed) << "after OnClosed";
    told.emplace_back(send.value(), status.code());
  }
  void OnClosed(LinkId, const absl::Status&) override { closed = true; }

  std::vector<std::pair<uint64_t, absl::StatusCode>> told;
  bool closed = false;
};

using Told = std::vector<std::pair<uint64_t, absl::StatusCode>>;
constexpr auto kOk = absl::StatusCode::kOk;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr auto kCancelled = absl::StatusCode::kCancelled;

// Three messages "aaaaaaaa", "bbbbbbbb", "cccccccc" with payloads of 8 bytes;
// the second one suffers.
class FaultTransportTest : public ::testing::Test {
 protected:
  void SendThree(FaultKind kind) {
    transport = std::make_unique<FaultTransport>(
        std::make_unique<Borrowed>(net.Add("a")),
        std::vector<FaultSpec>{{kind, 2, 0}});
    peer = net.Add("b");
    link = *transport->Connect("b");
    for (uint64_t i = 0; i < 3; ++i) {
      const absl::Status status = transport->Send(
          link, SendId(i + 1), Bytes(headers[i]), Bytes(payloads[i]));
      EXPECT_EQ(status.ok(), kind != FaultKind::kRefuse || i != 1);
    }
  }
  static absl::Span<const std::byte> Bytes(const std::string& text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
  }
  std::vector<std::string> Wire() const {
    std::vector<std::string> all;
    for (const Packet& packet : net.wire) {
      all.push_back(
          std::string(reinterpret_cast<const char*>(packet.header.data()),
                      packet.header.size()) +
          "/" +
          std::string(reinterpret_cast<const char*>(packet.payload.data()),
                      packet.payload.size()));
    }
    return all;
  }
  void DeliverAll() {
    while (!net.wire.empty()) {
      net.Deliver(0);
      peer->Progress(&heard);
      transport->Progress(&listener);
    }
    transport->Progress(&listener);
  }
  void CloseAndProgress() {
    transport->Close(link);
    for (int i = 0; i < 3; ++i) transport->Progress(&listener);
    EXPECT_TRUE(listener.closed);
  }
  // Runs until something more was told than `told` times.
  void ProgressBeyond(size_t told) {
    const MonotonicTime end = MonotonicNow() + std::chrono::seconds(20);
    while (listener.told.size() <= told && MonotonicNow() < end) {
      transport->Progress(&listener);
      transport->Wait(std::chrono::milliseconds(1));
    }
  }

  FakeNetwork net;
  std::unique_ptr<FaultTransport> transport;
  FakeTransport* peer = nullptr;
  Listener listener;
  Listener heard;  // by the peer
  LinkId link;
  const std::string headers[3] = {"aaaaaaaa", "bbbbbbbb", "cccccccc"};
  const std::string payloads[3] = {"11111111", "22222222", "33333333"};
  using Lines = std::vector<std::string>;
};

TEST_F(FaultTransportTest, Refuse) {
  SendThree(FaultKind::kRefuse);
  EXPECT_EQ(Wire(), (Lines{"aaaaaaaa/11111111", "cccccccc/33333333"}));
  DeliverAll();
  EXPECT_EQ(listener.told, (Told{{1, kOk}, {3, kOk}}));
  EXPECT_EQ(transport->faults_done(), 1u);
}

TEST_F(FaultTransportTest, Fail) {
  SendThree(FaultKind::kFail);
  EXPECT_EQ(Wire(), (Lines{"aaaaaaaa/11111111", "cccccccc/33333333"}));
  transport->Progress(&listener);
  EXPECT_EQ(listener.told, (Told{{2, kUnavailable}}));
}

TEST_F(FaultTransportTest, Late) {
  SendThree(FaultKind::kLate);
  EXPECT_EQ(Wire().size(), 3u);
  const MonotonicTime start = MonotonicNow();
  DeliverAll();
  EXPECT_EQ(listener.told, (Told{{1, kOk}, {3, kOk}}));
  ProgressBeyond(2);
  EXPECT_EQ(listener.told.back(), (std::pair(uint64_t{2}, kOk)));
  EXPECT_GE(MonotonicNow() - start, kFaultDelay);
}

TEST_F(FaultTransportTest, LateIsToldBeforeTheEnd) {
  SendThree(FaultKind::kLate);
  DeliverAll();
  CloseAndProgress();
  EXPECT_EQ(listener.told.back(), (std::pair(uint64_t{2}, kOk)));
}

TEST_F(FaultTransportTest, Duplicate) {
  SendThree(FaultKind::kDuplicate);
  EXPECT_EQ(Wire(), (Lines{"aaaaaaaa/11111111", "bbbbbbbb/22222222",
                           "bbbbbbbb/22222222", "cccccccc/33333333"}));
  DeliverAll();
  EXPECT_EQ(listener.told, (Told{{1, kOk}, {2, kOk}, {3, kOk}}));
}

TEST_F(FaultTransportTest, Reorder) {
  SendThree(FaultKind::kReorder);
  EXPECT_EQ(Wire(), (Lines{"aaaaaaaa/11111111", "cccccccc/33333333",
                           "bbbbbbbb/22222222"}));
  DeliverAll();
  EXPECT_EQ(listener.told, (Told{{1, kOk}, {3, kOk}, {2, kOk}}));
}

TEST_F(FaultTransportTest, ReorderOfTheLastOneIsADelay) {
  transport = std::make_unique<FaultTransport>(
      std::make_unique<Borrowed>(net.Add("a")),
      std::vector<FaultSpec>{{FaultKind::kReorder, 1, 0}});
  net.Add("b");
  link = *transport->Connect("b");
  ASSERT_TRUE(transport->Send(link, SendId(1), Bytes(headers[0]), {}).ok());
  EXPECT_TRUE(Wire().empty());
  const MonotonicTime end = MonotonicNow() + std::chrono::seconds(20);
  while (Wire().empty() && MonotonicNow() < end) {
    transport->Wait(std::chrono::milliseconds(1));
    transport->Progress(&listener);
  }
  EXPECT_EQ(Wire(), Lines{"aaaaaaaa/"});
}

TEST_F(FaultTransportTest, Truncate) {
  SendThree(FaultKind::kTruncate);
  EXPECT_EQ(Wire()[1], "bbbbbbbb/2222");
  DeliverAll();
  EXPECT_EQ(listener.told, (Told{{1, kOk}, {2, kOk}, {3, kOk}}));
}

TEST_F(FaultTransportTest, FlipLeavesTheUsersMemoryAlone) {
  SendThree(FaultKind::kFlip);
  EXPECT_EQ(Wire()[1], "bbbbbbbb/2222\"222");
  EXPECT_EQ(payloads[1], "22222222");
  DeliverAll();
  EXPECT_EQ(listener.told, (Told{{1, kOk}, {2, kOk}, {3, kOk}}));
}

TEST_F(FaultTransportTest, DropIsToldWhenTheLinkIsOver) {
  SendThree(FaultKind::kDrop);
  EXPECT_EQ(Wire(), (Lines{"aaaaaaaa/11111111", "cccccccc/33333333"}));
  DeliverAll();
  EXPECT_EQ(listener.told, (Told{{1, kOk}, {3, kOk}}));
  CloseAndProgress();
  EXPECT_EQ(listener.told.back(), (std::pair(uint64_t{2}, kCancelled)));
}

}  // namespace
}  // namespace baton::transfer
