#include "kv_transfer/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace baton::transfer {
namespace {

using ::testing::HasSubstr;

TransferKey SomeKey() {
  TransferKey key;
  key.landing = LandingId(0x1122334455667788);
  for (size_t i = 0; i < kNonceBytes; ++i) {
    key.nonce[i] = static_cast<std::byte>(i + 1);
  }
  key.transfer = TransferId(42);
  return key;
}

Fingerprint SomeFingerprint() {
  Fingerprint fingerprint;
  fingerprint.fill(std::byte{0xab});
  return fingerprint;
}

struct Sample {
  Recipient recipient;
  MessageBody body;
  size_t payload_bytes;
  size_t header_bytes;
};

std::vector<Sample> Samples() {
  return {
      {Recipient::kReceiver,
       Begin{WorkerEpoch(7), SomeFingerprint(), 100, 16, 7, 368'640}, 0, 108},
      {Recipient::kReceiver, Frame{3, 2, 0, 30, 16}, 1000, 68},
      {Recipient::kReceiver, SealMark{6}, 50, 56},
      {Recipient::kHolder, Ack{6}, 0, 52},
      {Recipient::kReceiver,
       AbortNotice{absl::StatusCode::kCancelled, "changed my mind"}, 0, 65},
      {Recipient::kHolder, AbortNotice{absl::StatusCode::kDataLoss, ""}, 0, 50},
      {Recipient::kReceiver, AbortAck{}, 0, 48},
      {Recipient::kHolder, AbortAck{}, 0, 48},
      {Recipient::kHolder, Refusal{absl::StatusCode::kNotFound, "no"}, 0, 52},
  };
}

std::vector<std::byte> HeaderOf(const Sample& sample,
                                const std::vector<std::byte>& payload) {
  const EncodedHeader header =
      EncodeHeader({SomeKey(), sample.recipient, sample.body}, payload);
  return {header.span().begin(), header.span().end()};
}

TEST(WireTest, ReadsWhatItWrote) {
  for (const Sample& sample : Samples()) {
    const std::vector<std::byte> payload(sample.payload_bytes, std::byte{5});
    const auto header = HeaderOf(sample, payload);
    EXPECT_EQ(header.size(), sample.header_bytes);
    const auto message = DecodeHeader(header, payload.size());
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(message->key, SomeKey());
    EXPECT_EQ(message->recipient, sample.recipient);
    EXPECT_TRUE(message->body == sample.body) << sample.body.index();
    EXPECT_TRUE(CheckCrc(header, payload).ok());
    EXPECT_EQ(*DecodeKey(header), SomeKey());
    EXPECT_EQ(IsBegin(header), std::holds_alternative<Begin>(sample.body));
  }
}

TEST(WireTest, TheLayoutIsFixed) {
  const auto header = HeaderOf({Recipient::kHolder, Ack{0x01020304}, 0, 0}, {});
  const uint8_t expected[] = {
      'B',  'T',  'N',  'K',  1,    0,    4,    1,     // magic version type to
      0,    0,    0,    0,    0,    0,    0,    0,     // crc (below), length
      1,    2,    3,    4,    5,    6,    7,    8,     // nonce
      9,    10,   11,   12,   13,   14,   15,   16,    //
      0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  // landing
      42,   0,    0,    0,    0,    0,    0,    0,     // transfer
      4,    3,    2,    1};                            // blocks
  ASSERT_EQ(header.size(), sizeof(expected));
  for (size_t i = 0; i < header.size(); ++i) {
    if (i >= 8 && i < 12) continue;
    EXPECT_EQ(static_cast<uint8_t>(header[i]), expected[i]) << i;
  }
}

TEST(WireTest, SeesEveryFlippedBit) {
  for (const Sample& sample : Samples()) {
    std::vector<std::byte> payload(std::min<size_t>(sample.payload_bytes, 64),
                                   std::byte{5});
    auto header = HeaderOf(sample, payload);
    for (size_t bit = 0; bit < 8 * header.size(); ++bit) {
      header[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      EXPECT_FALSE(DecodeHeader(header, payload.size()).ok() &&
                   CheckCrc(header, payload).ok())
          << sample.body.index() << " bit " << bit;
      header[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
    for (size_t bit = 0; bit < 8 * payload.size(); ++bit) {
      payload[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      EXPECT_TRUE(absl::IsDataLoss(CheckCrc(header, payload)));
      payload[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    }
  }
}

TEST(WireTest, RefusesEveryTruncationAndExtension) {
  for (const Sample& sample : Samples()) {
    const std::vector<std::byte> payload(sample.payload_bytes, std::byte{5});
    const auto header = HeaderOf(sample, payload);
    for (size_t size = 0; size < header.size(); ++size) {
      EXPECT_FALSE(
          DecodeHeader(absl::MakeSpan(header).first(size), payload.size())
              .ok());
      EXPECT_EQ(DecodeKey(absl::MakeSpan(header).first(size)).ok(),
                size >= kCommonHeaderBytes);
    }
    auto longer = header;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(DecodeHeader(longer, payload.size()).ok());
  }
}

TEST(WireTest, SaysWhatIsWrong) {
  const auto error =
      [](size_t offset, uint8_t value,
         const Sample& sample = {Recipient::kReceiver, Frame{}, 100, 0},
         size_t payload_bytes = 100) {
        const std::vector<std::byte> payload(sample.payload_bytes);
        auto header = HeaderOf(sample, payload);
        if (offset < header.size()) header[offset] = std::byte{value};
        return DecodeHeader(header, payload_bytes).status();
      };
  EXPECT_THAT(std::string(error(0, 'b').message()), HasSubstr("magic"));
  EXPECT_EQ(error(4, 2).message(), "protocol: got 2, allowed 1..1");
  EXPECT_TRUE(absl::IsUnimplemented(error(4, 0)));
  EXPECT_EQ(error(6, 0).message(), "type: got 0, allowed 1..7");
  EXPECT_EQ(error(6, 8).message(), "type: got 8, allowed 1..7");
  EXPECT_EQ(error(7, 1).message(), "recipient: got 1 for type 2");
  EXPECT_EQ(error(7, 200).message(), "recipient: got 200 for type 2");
  EXPECT_EQ(
      error(999, 0, {Recipient::kReceiver, Frame{}, 100, 0}, 99).message(),
      "length: header says 100, got 99 bytes");
  // CASES 3.104.
  const std::vector<std::byte> payload(100);
  auto header = HeaderOf({Recipient::kReceiver, Frame{}, 100, 0}, payload);
  std::fill_n(header.begin() + 12, 4, std::byte{0xff});
  EXPECT_EQ(DecodeHeader(header, 100).status().message(),
            "length: header says 4294967295, got 100 bytes");
  EXPECT_EQ(error(999, 0, {Recipient::kHolder, Ack{}, 10, 0}, 10).message(),
            "length: got 10 for type 4, allowed 0");
  EXPECT_TRUE(
      absl::IsDataLoss(error(48, 9, {Recipient::kHolder, Ack{}, 0, 0}, 0)));
}

TEST(WireTest, LongReasonsAreCut) {
  const std::string reason(1000, 'r');
  const auto header = HeaderOf(
      {Recipient::kHolder, Refusal{absl::StatusCode::kNotFound, reason}, 0, 0},
      {});
  EXPECT_LE(header.size(), kMaxHeaderBytes);
  const auto message = DecodeHeader(header, 0);
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(std::get<Refusal>(message->body).reason,
            reason.substr(0, kMaxReasonBytes));
}

TEST(WireTest, RandomBytesNeverDecode) {
  std::mt19937 random(1);
  for (int round = 0; round < 100'000; ++round) {
    std::vector<std::byte> header(random() % 300);
    for (std::byte& b : header) b = static_cast<std::byte>(random());
    if (header.size() > 8 && round % 2 == 0) {
      const uint8_t valid[] = {'B', 'T', 'N', 'K', 1, 0};
      std::memcpy(header.data(), valid, sizeof(valid));
      header[6] = static_cast<std::byte>(random() % 9);
      header[7] = static_cast<std::byte>(random() % 2);
    }
    EXPECT_FALSE(DecodeHeader(header, 0).ok());
  }
}

TEST(WireTest, NoncesAreComparedWhole) {
  Nonce a{};
  Nonce b{};
  EXPECT_TRUE(ConstantTimeEqual(a, b));
  for (size_t i = 0; i < kNonceBytes; ++i) {
    b[i] = std::byte{1};
    EXPECT_FALSE(ConstantTimeEqual(a, b));
    b[i] = std::byte{0};
  }
}

}  // namespace
}  // namespace baton::transfer
