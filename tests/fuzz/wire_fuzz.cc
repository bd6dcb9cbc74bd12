// Headers of the transfer protocol and tickets: what is decoded encodes to the
// same bytes, and no flipped bit gets through.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "kv_transfer/ticket.h"
#include "kv_transfer/wire.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/quiet_protobuf.h"

namespace baton::transfer {
namespace {

using fuzz::FuzzInput;

constexpr kernels::KvLayout kLayout{
    .layers = 2, .kv_heads = 1, .head_dim = 2, .type = kernels::KvType::kF16};

absl::Span<const std::byte> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

void CheckStatus(const absl::Status& status) {
  BATON_CHECK(!status.message().empty());
  BATON_CHECK(status.code() == absl::StatusCode::kInvalidArgument ||
              status.code() == absl::StatusCode::kUnimplemented ||
              status.code() == absl::StatusCode::kDataLoss);
}

bool NamesKnownCode(const Message& message, absl::Span<const std::byte> from) {
  if (!std::holds_alternative<AbortNotice>(message.body) &&
      !std::holds_alternative<Refusal>(message.body)) {
    return true;
  }
  const auto code = static_cast<uint8_t>(from[kCommonHeaderBytes]);
  return code >= 1 && code <= 16;
}

// Bytes from anywhere.
void CheckRaw(FuzzInput input) {
  const std::string payload(input.Bytes(input.Below(128)));
  // Its own memory, so that a read past the end is found.
  const std::string header(input.Rest());
  const auto bytes = AsBytes(header);
  IsBegin(bytes);
  const auto key = DecodeKey(bytes);
  const absl::Status crc = CheckCrc(bytes, AsBytes(payload));
  const auto message = DecodeHeader(bytes, payload.size());
  if (!message.ok()) return CheckStatus(message.status());
  BATON_CHECK(key.ok() && *key == message->key);
  BATON_CHECK(!payload.empty() || crc.ok());
  if (!crc.ok() || !NamesKnownCode(*message, bytes)) return;
  const EncodedHeader again = EncodeHeader(*message, AsBytes(payload));
  BATON_CHECK(again.size == header.size());
  BATON_CHECK(std::memcmp(again.bytes.data(), header.data(), again.size) == 0);
}

MessageBody AnyBody(FuzzInput* input) {
  const auto reason = [&] {
    return std::string(input->Bytes(input->Below(200)));
  };
  const auto code = [&] {
    return static_cast<absl::StatusCode>(1 + input->Below(16));
  };
  switch (input->Below(7)) {
    case 0: {
      Begin begin;
      begin.epoch = WorkerEpoch(input->Number<uint64_t>());
      begin.fingerprint.fill(static_cast<std::byte>(input->Byte()));
      begin.token_count = input->Number<uint32_t>();
      begin.held_tokens = input->Number<uint32_t>();
      begin.block_count = input->Number<uint32_t>();
      begin.block_bytes = input->Number<uint64_t>();
      return begin;
    }
    case 1:
      return Frame{input->Number<uint64_t>(), input->Number<uint32_t>(),
                   input->Number<uint16_t>(), input->Number<uint16_t>(),
                   input->Number<uint32_t>()};
    case 2:
      return SealMark{input->Number<uint64_t>()};
    case 3:
      return Ack{input->Number<uint32_t>()};
    case 4:
      return AbortNotice{code(), reason()};
    case 5:
      return AbortAck{};
    default:
      return Refusal{code(), reason()};
  }
}

// A message of our own, and the same with one bit flipped.
void CheckEncoded(FuzzInput input) {
  Message message;
  message.key.landing = LandingId(input.Number<uint64_t>());
  message.key.transfer = TransferId(input.Number<uint64_t>());
  message.key.nonce.fill(static_cast<std::byte>(input.Byte()));
  message.body = AnyBody(&input);
  const bool to_receiver = message.body.index() < 3 || input.Bool();
  message.recipient = to_receiver &&
                              !std::holds_alternative<Ack>(message.body) &&
                              !std::holds_alternative<Refusal>(message.body)
                          ? Recipient::kReceiver
                          : Recipient::kHolder;
  const bool carries = std::holds_alternative<Frame>(message.body) ||
                       std::holds_alternative<SealMark>(message.body);
  const uint32_t flip = input.Number<uint32_t>();
  std::string payload(carries ? input.Rest() : "");
  const EncodedHeader header = EncodeHeader(message, AsBytes(payload));
  BATON_CHECK(header.size <= kMaxHeaderBytes);
  const auto decoded = DecodeHeader(header.span(), payload.size());
  BATON_CHECK(decoded.ok());
  BATON_CHECK(decoded->key == message.key);
  BATON_CHECK(decoded->recipient == message.recipient);
  BATON_CHECK(decoded->body.index() == message.body.index());
  BATON_CHECK(CheckCrc(header.span(), AsBytes(payload)).ok());
  BATON_CHECK(IsBegin(header.span()) ==
              std::holds_alternative<Begin>(message.body));

  std::string bytes(reinterpret_cast<const char*>(header.bytes.data()),
                    header.size);
  const size_t bit = flip % ((bytes.size() + payload.size()) * 8);
  const size_t byte = bit / 8;
  char& hit = byte < bytes.size() ? bytes[byte] : payload[byte - bytes.size()];
  hit = static_cast<char>(hit ^ (1 << bit % 8));
  const auto flipped = DecodeHeader(AsBytes(bytes), payload.size());
  BATON_CHECK(!flipped.ok() ||
              !CheckCrc(AsBytes(bytes), AsBytes(payload)).ok());
}

void CheckTicketBytes(std::string_view text) {
  Ticket ticket;
  if (!ticket.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
    return;
  }
  TransferOptions options;
  options.epoch = WorkerEpoch(2);
  options.fingerprint = std::string(kFingerprintBytes, 'f');
  options.layout = kLayout;
  const auto terms = CheckTicket(ticket, options, "fake");
  if (!terms.ok()) {
    BATON_CHECK(terms.status().message().find("ticket.") == 0);
    return CheckStatus(terms.status());
  }
  const Begin& begin = terms->begin;
  BATON_CHECK(begin.block_count >= 1 &&
              begin.block_count <= kMaxBlocksPerTransfer);
  BATON_CHECK(begin.held_tokens <= begin.token_count);
  BATON_CHECK(terms->held_blocks() <= begin.block_count);
  BATON_CHECK(begin.block_bytes == kLayout.block_bytes());
  uint64_t tokens = 0;
  for (uint32_t i = 0; i < begin.block_count; ++i) {
    const uint32_t written = terms->WrittenTokens(i);
    BATON_CHECK(written >= 1 && written <= 16);
    tokens += written;
  }
  BATON_CHECK(tokens == begin.token_count);
}

}  // namespace
}  // namespace baton::transfer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  baton::fuzz::FuzzInput input(data, size);
  switch (input.Below(3)) {
    case 0:
      baton::transfer::CheckRaw(input);
      break;
    case 1:
      baton::transfer::CheckEncoded(input);
      break;
    default:
      baton::transfer::CheckTicketBytes(input.Rest());
  }
  return 0;
}
