// What a peer that does not keep to the protocol can do: lose its own link.
#include "kv_transfer/grpc/grpc_engine.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <thread>

#include "kv_transfer/grpc/grpc_address.h"

namespace baton::transfer {
namespace {

using std::chrono::seconds;

class Record final : public TransportHandler {
 public:
  absl::Span<std::byte> OnHeader(LinkId, absl::Span<const std::byte>,
                                 size_t payload_bytes) override {
    ++headers;
    if (payload_bytes > place.size()) return {};
    return absl::MakeSpan(place).first(payload_bytes);
  }
  void OnMessage(LinkId, absl::Span<const std::byte>,
                 absl::Span<const std::byte>) override {
    ++messages;
  }
  void OnSent(LinkId, SendId, const absl::Status&) override {}
  void OnClosed(LinkId, const absl::Status& status) override {
    closed.push_back(status);
  }

  std::vector<std::byte> place = std::vector<std::byte>(1000);
  int headers = 0;
  int messages = 0;
  std::vector<absl::Status> closed;
};

v1::LinkPiece Piece(const std::string& header, uint64_t payload_bytes,
                    const std::string& data) {
  v1::LinkPiece piece;
  piece.set_header(header);
  piece.set_payload_bytes(payload_bytes);
  piece.set_data(data);
  return piece;
}

class GrpcEngineTest : public ::testing::Test {
 protected:
  GrpcEngineTest() : engine_(GrpcTransportOptions{}) {
    EXPECT_TRUE(engine_.Start().ok());
  }

  // Polls until `done`; false after a long time.
  bool PollUntil(const std::function<bool()>& done) {
    const MonotonicTime give_up = MonotonicNow() + seconds(30);
    while (!done()) {
      if (MonotonicNow() > give_up) return false;
      if (!engine_.Progress(&record_)) {
        engine_.Wait(std::chrono::milliseconds(1));
      }
    }
    return true;
  }

  // Sends the pieces on a link of their own and polls until it is over.
  void Inject(const std::vector<v1::LinkPiece>& pieces) {
    const size_t closed = record_.closed.size();
    const auto stub = v1::KvLink::NewStub(
        MakeChannel(ParseGrpcAddress(engine_.address())->ToString(),
                    {.own_connection = true}));
    std::thread peer([&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + seconds(30));
      const auto stream = stub->Link(&context);
      for (const v1::LinkPiece& piece : pieces) {
        if (!stream->Write(piece)) break;
      }
      v1::LinkPiece ignored;
      while (stream->Read(&ignored)) {
      }
      EXPECT_FALSE(stream->Finish().ok());
    });
    EXPECT_TRUE(PollUntil([&] { return record_.closed.size() > closed; }));
    peer.join();
  }

  GrpcEngine engine_;
  Record record_;
};

TEST_F(GrpcEngineTest, PiecesOutOfPlaceEndTheLink) {
  const std::vector<std::vector<v1::LinkPiece>> cases = {
      {Piece("", 0, "")},                                 // nothing
      {Piece("", 5, "hello")},                            // data without header
      {Piece(std::string(257, 'h'), 0, "")},              // header too long
      {Piece("h", 3, "hello")},                           // more than announced
      {Piece("h", 10, "hello"), Piece("h", 10, "x")},     // a second header
      {Piece("h", 10, "hello"), Piece("", 0, "world!")},  // one byte too many
      {Piece("h", 10, "hello"), Piece("", 0, "")},        // no progress
  };
  for (const auto& pieces : cases) {
    Inject(pieces);
    EXPECT_EQ(record_.closed.back().code(), absl::StatusCode::kDataLoss)
        << pieces[0].ShortDebugString();
  }
  EXPECT_EQ(record_.messages, 0);
}

TEST_F(GrpcEngineTest, PayloadWithoutAPlaceNeedsNoMemory) {
  Inject({Piece("h", uint64_t{1} << 60, "x"), Piece("", 0, "y"),
          Piece("g", 0, "")});
  EXPECT_EQ(record_.headers, 1);
  EXPECT_EQ(record_.messages, 0);
}

TEST_F(GrpcEngineTest, MessagesLargerThanAPieceAreRefused) {
  Inject({Piece("h", 1 << 20, std::string(600 << 10, 'x'))});
  EXPECT_EQ(record_.headers, 0);
}

TEST_F(GrpcEngineTest, OthersAreServedMeanwhile) {
  const auto link = engine_.Connect(engine_.address());
  ASSERT_TRUE(link.ok());
  const std::string header = "good";
  const std::string payload(900, 'p');
  for (int i = 0; i < 5; ++i) {
    Inject({Piece("h", 3, "hello")});
    const int before = record_.messages;
    ASSERT_TRUE(engine_
                    .Send(*link, SendId(i + 1),
                          {reinterpret_cast<const std::byte*>(header.data()),
                           header.size()},
                          {reinterpret_cast<const std::byte*>(payload.data()),
                           payload.size()})
                    .ok());
    EXPECT_TRUE(PollUntil([&] { return record_.messages > before; }));
  }
  EXPECT_EQ(record_.place[899], std::byte{'p'});
}

}  // namespace
}  // namespace baton::transfer
