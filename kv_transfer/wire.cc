#include "kv_transfer/wire.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace baton::transfer {
namespace {

enum class Type : uint8_t {
  kBegin = 1,
  kFrame,
  kSeal,
  kAck,
  kAbort,
  kAbortAck,
  kRefusal,
};

constexpr size_t kTypeOffset = 6;
constexpr size_t kCrcOffset = 8;

class Writer {
 public:
  explicit Writer(EncodedHeader* out) : out_(out) {}

  template <class T>
  void Put(T value) {
    static_assert(std::is_unsigned_v<T>);
    Put(&value, sizeof(value));
  }
  void Put(const void* data, size_t size) {
    BATON_CHECK(out_->size + size <= out_->bytes.size());
    std::memcpy(out_->bytes.data() + out_->size, data, size);
    out_->size += size;
  }

 private:
  EncodedHeader* out_;
};

class Reader {
 public:
  explicit Reader(absl::Span<const std::byte> in) : in_(in) {}

  template <class T>
  T Get() {
    T value{};
    Get(&value, sizeof(value));
    return value;
  }
  void Get(void* data, size_t size) {
    if (size > in_.size()) {
      truncated_ = true;
      return;
    }
    std::memcpy(data, in_.data(), size);
    in_.remove_prefix(size);
  }
  absl::Status Finish() const {
    if (truncated_) return absl::InvalidArgumentError("truncated header");
    if (!in_.empty()) {
      return absl::InvalidArgumentError(
          StrCat("header: ", in_.size(), " bytes too long"));
    }
    return absl::OkStatus();
  }

 private:
  absl::Span<const std::byte> in_;
  bool truncated_ = false;
};

struct BodyWriter {
  Writer* out;

  void operator()(const Begin& b) const {
    out->Put(b.epoch.value());
    out->Put(b.fingerprint.data(), b.fingerprint.size());
    out->Put(b.token_count);
    out->Put(b.held_tokens);
    out->Put(b.block_count);
    out->Put(b.block_bytes);
  }
  void operator()(const Frame& f) const {
    out->Put(f.sequence);
    out->Put(f.ordinal);
    out->Put(f.layer_begin);
    out->Put(f.layer_end);
    out->Put(f.written_tokens);
  }
  void operator()(const SealMark& s) const { out->Put(s.frames); }
  void operator()(const Ack& a) const { out->Put(a.blocks); }
  void operator()(const AbortNotice& a) const { PutReason(a.code, a.reason); }
  void operator()(const AbortAck&) const {}
  void operator()(const Refusal& r) const { PutReason(r.code, r.reason); }

  void PutReason(absl::StatusCode code, const std::string& reason) const {
    const size_t size = std::min(reason.size(), kMaxReasonBytes);
    out->Put(static_cast<uint8_t>(code));
    out->Put(static_cast<uint8_t>(size));
    out->Put(reason.data(), size);
  }
};

template <class T>
T ReadReason(Reader* in) {
  T body;
  const auto code = in->Get<uint8_t>();
  body.code = code >= 1 && code <= 16 ? static_cast<absl::StatusCode>(code)
                                      : absl::StatusCode::kUnknown;
  body.reason.resize(std::min<size_t>(in->Get<uint8_t>(), kMaxReasonBytes));
  in->Get(body.reason.data(), body.reason.size());
  return body;
}

MessageBody ReadBody(Type type, Reader* in) {
  switch (type) {
    case Type::kBegin: {
      Begin b;
      b.epoch = WorkerEpoch(in->Get<uint64_t>());
      in->Get(b.fingerprint.data(), b.fingerprint.size());
      b.token_count = in->Get<uint32_t>();
      b.held_tokens = in->Get<uint32_t>();
      b.block_count = in->Get<uint32_t>();
      b.block_bytes = in->Get<uint64_t>();
      return b;
    }
    case Type::kFrame: {
      Frame f;
      f.sequence = in->Get<uint64_t>();
      f.ordinal = in->Get<uint32_t>();
      f.layer_begin = in->Get<uint16_t>();
      f.layer_end = in->Get<uint16_t>();
      f.written_tokens = in->Get<uint32_t>();
      return f;
    }
    case Type::kSeal:
      return SealMark{.frames = in->Get<uint64_t>()};
    case Type::kAck:
      return Ack{.blocks = in->Get<uint32_t>()};
    case Type::kAbort:
      return ReadReason<AbortNotice>(in);
    case Type::kAbortAck:
      return AbortAck{};
    case Type::kRefusal:
      return ReadReason<Refusal>(in);
  }
  return AbortAck{};
}

bool CarriesPayload(const MessageBody& body) {
  return std::holds_alternative<Frame>(body) ||
         std::holds_alternative<SealMark>(body);
}

bool GoesTo(const MessageBody& body, Recipient recipient) {
  const bool both = std::holds_alternative<AbortNotice>(body) ||
                    std::holds_alternative<AbortAck>(body);
  const bool to_receiver =
      std::holds_alternative<Begin>(body) || CarriesPayload(body);
  return both || to_receiver == (recipient == Recipient::kReceiver);
}

uint32_t CrcOf(absl::Span<const std::byte> header,
               absl::Span<const std::byte> payload) {
  constexpr std::array<std::byte, 4> kNoCrc{};
  uint32_t crc = Crc32c(header.first(kCrcOffset));
  crc = ExtendCrc32c(crc, kNoCrc);
  crc = ExtendCrc32c(crc, header.subspan(kCrcOffset + kNoCrc.size()));
  return ExtendCrc32c(crc, payload);
}

struct CommonHeader {
  uint32_t magic;
  uint16_t version;
  uint8_t type;
  uint8_t recipient;
  uint32_t payload_bytes;
  TransferKey key;
};

CommonHeader ReadCommon(Reader* in) {
  CommonHeader common;
  common.magic = in->Get<uint32_t>();
  common.version = in->Get<uint16_t>();
  common.type = in->Get<uint8_t>();
  common.recipient = in->Get<uint8_t>();
  in->Get<uint32_t>();
  common.payload_bytes = in->Get<uint32_t>();
  in->Get(common.key.nonce.data(), kNonceBytes);
  common.key.landing = LandingId(in->Get<uint64_t>());
  common.key.transfer = TransferId(in->Get<uint64_t>());
  return common;
}

}  // namespace

bool ConstantTimeEqual(const Nonce& a, const Nonce& b) {
  std::byte difference{0};
  for (size_t i = 0; i < kNonceBytes; ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

EncodedHeader EncodeHeader(const Message& message,
                           absl::Span<const std::byte> payload) {
  BATON_CHECK(payload.size() <= std::numeric_limits<uint32_t>::max());
  EncodedHeader header;
  Writer out(&header);
  out.Put(kWireMagic);
  out.Put(kProtocolMax);
  out.Put(static_cast<uint8_t>(message.body.index() + 1));
  out.Put(static_cast<uint8_t>(message.recipient));
  out.Put(uint32_t{0});
  out.Put(static_cast<uint32_t>(payload.size()));
  out.Put(message.key.nonce.data(), kNonceBytes);
  out.Put(message.key.landing.value());
  out.Put(message.key.transfer.value());
  std::visit(BodyWriter{&out}, message.body);
  const uint32_t crc = CrcOf(header.span(), payload);
  std::memcpy(header.bytes.data() + kCrcOffset, &crc, sizeof(crc));
  return header;
}

absl::StatusOr<Message> DecodeHeader(absl::Span<const std::byte> header,
                                     size_t payload_bytes) {
  if (header.size() < kCommonHeaderBytes || header.size() > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(
        StrCat("truncated header: ", header.size(), " bytes, allowed ",
               kCommonHeaderBytes, "..", kMaxHeaderBytes));
  }
  Reader in(header);
  const CommonHeader common = ReadCommon(&in);
  if (common.magic != kWireMagic) {
    return absl::InvalidArgumentError(
        StrCat("magic: got ", common.magic, ", allowed ", kWireMagic));
  }
  if (common.version < kProtocolMin || common.version > kProtocolMax) {
    return absl::UnimplementedError(StrCat("protocol: got ", common.version,
                                           ", allowed ", kProtocolMin, "..",
                                           kProtocolMax));
  }
  if (common.type < 1 || common.type > std::variant_size_v<MessageBody>) {
    return absl::InvalidArgumentError(StrCat("type: got ", common.type,
                                             ", allowed 1..",
                                             std::variant_size_v<MessageBody>));
  }
  Message message;
  message.key = common.key;
  message.recipient = static_cast<Recipient>(common.recipient);
  message.body = ReadBody(static_cast<Type>(common.type), &in);
  BATON_RETURN_IF_ERROR(in.Finish());
  if (common.recipient > 1 || !GoesTo(message.body, message.recipient)) {
    return absl::InvalidArgumentError(
        StrCat("recipient: got ", common.recipient, " for type ", common.type));
  }
  if (common.payload_bytes != payload_bytes) {
    return absl::InvalidArgumentError(StrCat("length: header says ",
                                             common.payload_bytes, ", got ",
                                             payload_bytes, " bytes"));
  }
  if (payload_bytes != 0 && !CarriesPayload(message.body)) {
    return absl::InvalidArgumentError(StrCat("length: got ", payload_bytes,
                                             " for type ", common.type,
                                             ", allowed 0"));
  }
  if (payload_bytes == 0) BATON_RETURN_IF_ERROR(CheckCrc(header, {}));
  return message;
}

absl::StatusOr<TransferKey> DecodeKey(absl::Span<const std::byte> header) {
  Reader in(header.first(std::min(header.size(), kCommonHeaderBytes)));
  const CommonHeader common = ReadCommon(&in);
  BATON_RETURN_IF_ERROR(in.Finish());
  return common.key;
}

bool IsBegin(absl::Span<const std::byte> header) {
  uint32_t magic = 0;
  if (header.size() < kCommonHeaderBytes) return false;
  std::memcpy(&magic, header.data(), sizeof(magic));
  return magic == kWireMagic &&
         header[kTypeOffset] == static_cast<std::byte>(Type::kBegin);
}

absl::Status CheckCrc(absl::Span<const std::byte> header,
                      absl::Span<const std::byte> payload) {
  if (header.size() < kCommonHeaderBytes) {
    return absl::InvalidArgumentError("truncated header");
  }
  uint32_t said = 0;
  std::memcpy(&said, header.data() + kCrcOffset, sizeof(said));
  const uint32_t computed = CrcOf(header, payload);
  if (said == computed) return absl::OkStatus();
  return absl::DataLossError(
      StrCat("crc32c: header says ", said, ", computed ", computed));
}

}  // namespace baton::transfer
