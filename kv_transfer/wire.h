#ifndef BATON_KV_TRANSFER_WIRE_H_
#define BATON_KV_TRANSFER_WIRE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "kv_transfer/transport.h"

namespace baton::transfer {

// The messages of a transfer as fixed little-endian headers. Every header
// opens with these 48 bytes, in every protocol version:
//
//   0 magic u32     4 version u16    6 type u8    7 recipient u8
//   8 crc32c u32   12 payload bytes u32          16 nonce 16 bytes
//  32 landing id u64                             40 transfer id u64
//
// The CRC covers the header, with the CRC field zero, and then the payload.
inline constexpr uint32_t kWireMagic = 0x4b4e5442;  // "BTNK"
inline constexpr uint16_t kProtocolMin = 1;
inline constexpr uint16_t kProtocolMax = 1;
inline constexpr size_t kCommonHeaderBytes = 48;
inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kFingerprintBytes = 32;
inline constexpr size_t kMaxReasonBytes = 160;
inline constexpr size_t kMaxSealBytes = 256 * 1024;

using Nonce = std::array<std::byte, kNonceBytes>;
using Fingerprint = std::array<std::byte, kFingerprintBytes>;

// Compares in a time that does not depend on where they differ.
bool ConstantTimeEqual(const Nonce& a, const Nonce& b);

enum class Recipient : uint8_t { kReceiver = 0, kHolder = 1 };

// Names one transfer to both sides: the ticket it redeems and the holder's
// own number for it.
struct TransferKey {
  LandingId landing;
  Nonce nonce{};
  TransferId transfer;
  friend bool operator==(const TransferKey&, const TransferKey&) = default;
};

// Holder to receiver, first.
struct Begin {
  WorkerEpoch epoch;  // of the receiver, as the ticket says
  Fingerprint fingerprint{};
  uint32_t token_count = 0;
  uint32_t held_tokens = 0;
  uint32_t block_count = 0;
  uint64_t block_bytes = 0;
  friend bool operator==(const Begin&, const Begin&) = default;
};
// One block; the payload is its bytes.
struct Frame {
  uint64_t sequence = 0;  // counts the frames of a transfer from 0
  uint32_t ordinal = 0;   // of the block within the landing
  uint16_t layer_begin = 0;
  uint16_t layer_end = 0;
  uint32_t written_tokens = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};
// After the last frame; the payload is a SealContents.
struct SealMark {
  uint64_t frames = 0;  // sent in this transfer
  friend bool operator==(const SealMark&, const SealMark&) = default;
};
// Receiver to holder: all blocks are verified.
struct Ack {
  uint32_t blocks = 0;
  friend bool operator==(const Ack&, const Ack&) = default;
};
// Either way: the sender of this message gave the transfer up. The holder
// sends no frame after it.
struct AbortNotice {
  absl::StatusCode code = absl::StatusCode::kAborted;
  std::string reason;  // cut at kMaxReasonBytes
  friend bool operator==(const AbortNotice&, const AbortNotice&) = default;
};
// Answers AbortNotice. From the holder: no frame follows. From the receiver:
// no receive of the landing is outstanding.
struct AbortAck {
  friend bool operator==(const AbortAck&, const AbortAck&) = default;
};
// Receiver to holder: BEGIN was not accepted; nothing was received.
struct Refusal {
  absl::StatusCode code = absl::StatusCode::kNotFound;
  std::string reason;  // cut at kMaxReasonBytes
  friend bool operator==(const Refusal&, const Refusal&) = default;
};

using MessageBody =
    std::variant<Begin, Frame, SealMark, Ack, AbortNotice, AbortAck, Refusal>;

struct Message {
  TransferKey key;
  Recipient recipient = Recipient::kReceiver;
  MessageBody body;
};

// A header ready to be sent.
struct EncodedHeader {
  std::array<std::byte, kMaxHeaderBytes> bytes;
  size_t size = 0;
  absl::Span<const std::byte> span() const { return {bytes.data(), size}; }
};

// Requires payload.size() < 4 GiB.
EncodedHeader EncodeHeader(const Message& message,
                           absl::Span<const std::byte> payload);

// Checks everything about a header that can be known without context; and the
// CRC where there is no payload. Messages name the field, what was given and
// what is allowed. UNIMPLEMENTED: another protocol version.
absl::StatusOr<Message> DecodeHeader(absl::Span<const std::byte> header,
                                     size_t payload_bytes);

// The key alone, from a header of any protocol version.
absl::StatusOr<TransferKey> DecodeKey(absl::Span<const std::byte> header);
// True if the header, of any version, is a BEGIN.
bool IsBegin(absl::Span<const std::byte> header);

// DATA_LOSS when the CRC in `header` is not that of header and payload.
absl::Status CheckCrc(absl::Span<const std::byte> header,
                      absl::Span<const std::byte> payload);

}  // namespace baton::transfer

#endif  // BATON_KV_TRANSFER_WIRE_H_
