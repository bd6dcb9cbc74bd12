#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "common/model_file/gguf.h"
#include "tests/support/gguf_writer.h"

namespace baton {
namespace {

absl::Span<const std::byte> AsBytes(std::string_view bytes) {
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()),
                             bytes.size());
}

template <class T>
std::string NumberBytes(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

std::string U32Bytes(uint32_t value) { return NumberBytes(value); }
std::string U64Bytes(uint64_t value) { return NumberBytes(value); }
std::string StringBytes(std::string_view text) {
  return U64Bytes(text.size()) + std::string(text);
}

std::string Header(uint64_t tensors, uint64_t values) {
  return "GGUF" + U32Bytes(3) + U64Bytes(tensors) + U64Bytes(values);
}

// Enough bytes after a damaged field that only the field is at fault.
std::string Tail() { return std::string(4096, '\0'); }

std::string NestedArrays(int depth) {
  std::string payload;
  for (int i = 0; i + 1 < depth; ++i) payload += U32Bytes(9) + U64Bytes(1);
  return payload + U32Bytes(0) + U64Bytes(0);
}

std::string OneTensor(const std::string& after_name) {
  return Header(1, 0) + StringBytes("w") + after_name + Tail();
}

std::string KeyValue(std::string_view key, uint32_t type,
                     const std::string& payload) {
  return StringBytes(key) + U32Bytes(type) + payload;
}

std::string OneValue(std::string_view key, uint32_t type,
                     const std::string& payload) {
  return Header(0, 1) + KeyValue(key, type, payload);
}

std::string ShapeAndType(std::vector<uint64_t> shape, uint32_t type,
                         uint64_t offset = 0) {
  std::string bytes = U32Bytes(static_cast<uint32_t>(shape.size()));
  for (const uint64_t size : shape) bytes += U64Bytes(size);
  return bytes + U32Bytes(type) + U64Bytes(offset);
}

struct BadFile {
  const char* name;
  std::string bytes;
  std::string message;
};

std::vector<BadFile> BadFiles() {
  const auto alignment = [](uint32_t value) {
    return OneValue("general.alignment", 4, U32Bytes(value));
  };
  return {
      {"empty", "",
       "m@0: header: too short (got 0, allowed at least 24 bytes)"},
      {"23 bytes", Header(0, 0).substr(0, 23),
       "m@0: header: too short (got 23, allowed at least 24 bytes)"},
      {"zip", "PK\x03\x04" + std::string(60, 'x'),
       "m@0: magic: not GGUF (got 'PK\\x03\\x04', allowed 'GGUF')"},
      {"version", "GGUF" + U32Bytes(999) + Tail(),
       "m@8: version: unsupported version (got 999, allowed 3)"},
      {"old version", "GGUF" + U32Bytes(1) + Tail(),
       "m@8: version: unsupported version (got 1, allowed 3)"},
      {"big-endian", "GGUF" + U32Bytes(0x03000000) + Tail(),
       "m@8: version: unsupported endianness (got big-endian, allowed "
       "little-endian)"},
      {"tensor count", Header(uint64_t{1} << 63, 0) + std::string(330, '\0'),
       "m@16: tensor_count: count exceeds remaining bytes (got "
       "9223372036854775808, allowed at most 10)"},
      {"value count", Header(0, uint64_t{1} << 40) + std::string(140, '\0'),
       "m@24: metadata_kv_count: count exceeds remaining bytes (got "
       "1099511627776, allowed at most 10)"},
      {"key length", Header(0, 1) + U64Bytes(5000) + std::string(100, 'k'),
       "m@32: metadata[0].key: length exceeds remaining bytes (got 5000, "
       "allowed at most 100)"},
      {"key length overflows",
       Header(0, 1) + U64Bytes(~uint64_t{0}) + std::string(100, 'k'),
       "m@32: metadata[0].key: length exceeds remaining bytes (got "
       "18446744073709551615, allowed at most 100)"},
      {"key limit", Header(0, 1) + U64Bytes(70000) + std::string(80000, 'k'),
       "m@32: metadata[0].key: too long (got 70000, allowed at most 65535)"},
      {"empty key", Header(0, 1) + StringBytes("") + Tail(),
       "m@32: metadata[0].key: empty key (got '', allowed a name)"},
      {"string value",
       Header(0, 1) + StringBytes("k") + U32Bytes(8) + U64Bytes(77) + "short",
       "m@45: k: length exceeds remaining bytes (got 77, allowed at most 5)"},
      {"value type", OneValue("k", 13, Tail()),
       "m@37: k: unknown value type (got 13, allowed 0..12)"},
      {"element type", OneValue("k", 9, U32Bytes(99) + U64Bytes(0)),
       "m@41: k: unknown value type (got 99, allowed 0..12)"},
      {"truncated value", OneValue("k", 10, "1234"),
       "m@37: k: truncated (got 4, allowed at least 8 bytes)"},
      {"array count",
       OneValue("k", 9, U32Bytes(6) + U64Bytes(uint64_t{1} << 62) + "12345678"),
       "m@49: k: count exceeds remaining bytes (got 4611686018427387904, "
       "allowed at most 2)"},
      {"string array count",
       OneValue("k", 9, U32Bytes(8) + U64Bytes(1 << 20) + "12345678"),
       "m@49: k: count exceeds remaining bytes (got 1048576, allowed at most "
       "1)"},
      {"nested", OneValue("k", 9, NestedArrays(100)),
       "m@85: k: arrays nested too deep (got 5, allowed at most 4)"},
      {"duplicate key",
       Header(0, 2) + KeyValue("k", 4, U32Bytes(1)) +
           KeyValue("k", 4, U32Bytes(2)),
       "m@50: k: duplicate key (got a second one, allowed one)"},
      {"alignment 0", alignment(0),
       "m@57: general.alignment: out of range (got 0, allowed power of two, "
       "8..4096)"},
      {"alignment 3", alignment(3),
       "m@57: general.alignment: out of range (got 3, allowed power of two, "
       "8..4096)"},
      {"alignment 2^31", alignment(1u << 31),
       "m@57: general.alignment: out of range (got 2147483648, allowed power "
       "of two, 8..4096)"},
      {"alignment type", OneValue("general.alignment", 8, StringBytes("32")),
       "m@63: general.alignment: wrong type (got string, allowed u32)"},
      {"no dimensions", OneTensor(U32Bytes(0)),
       "m@37: tensor w.n_dims: out of range (got 0, allowed 1..4)"},
      {"nine dimensions", OneTensor(U32Bytes(9)),
       "m@37: tensor w.n_dims: out of range (got 9, allowed 1..4)"},
      {"zero dimension", OneTensor(ShapeAndType({4, 0}, 0)),
       "m@53: tensor w.shape[1]: zero (got 0, allowed at least 1)"},
      {"elements overflow",
       OneTensor(ShapeAndType({uint64_t{1} << 40, uint64_t{1} << 40}, 0)),
       "m@53: tensor w.shape[1]: element count overflows (got 1099511627776, "
       "allowed a product below 2^63)"},
      {"bytes overflow", OneTensor(ShapeAndType({uint64_t{1} << 62}, 0)),
       "m@57: tensor w: byte count overflows (got 4611686018427387904, "
       "allowed fewer than 2^64 bytes)"},
      {"type", OneTensor(ShapeAndType({4}, 77)),
       "m@57: tensor w: type 77 not supported (got 77, allowed F32, F16, "
       "Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, BF16)"},
      {"partial block", OneTensor(ShapeAndType({33}, 3)),
       "m@57: tensor w.shape[0]: row of partial Q4_1 blocks (got 33, allowed "
       "multiples of 32)"},
      {"unaligned offset", OneTensor(ShapeAndType({4}, 0, 5)),
       "m@57: tensor w.offset: not aligned (got 5, allowed multiples of 32)"},
      {"offset past end", OneTensor(ShapeAndType({4}, 0, uint64_t{1} << 60)),
       "m@57: tensor w: data exceeds the file (got offset "
       "1152921504606846976, 16 bytes, allowed within 4089)"},
      {"data past end", OneTensor(ShapeAndType({1024, 2}, 0)),
       "m@65: tensor w: data exceeds the file (got offset 0, 8192 bytes, "
       "allowed within 4065)"},
      {"tensor name limit",
       Header(1, 0) + StringBytes(std::string(65, 'n')) + Tail(),
       "m@32: tensors[0].name: too long (got 65, allowed at most 64)"},
      {"empty tensor name", Header(1, 0) + StringBytes("") + Tail(),
       "m@32: tensors[0].name: empty name (got '', allowed a name)"},
      {"duplicate tensor",
       Header(2, 0) + StringBytes("w") + ShapeAndType({8}, 0, 0) +
           StringBytes("w") + ShapeAndType({8}, 0, 32) + Tail(),
       "m@66: tensor w: duplicate tensor (got a second one, allowed one)"},
      {"overlap",
       Header(2, 0) + StringBytes("v") + ShapeAndType({16}, 0, 0) +
           StringBytes("w") + ShapeAndType({16}, 0, 32) + Tail(),
       "m@90: tensor w: data overlaps (got a share with v, allowed bytes of "
       "its own)"},
  };
}

TEST(GgufMalformedTest, EveryErrorNamesFieldGotAndAllowed) {
  for (const BadFile& bad : BadFiles()) {
    const absl::Status status =
        GgufFile::Parse(AsBytes(bad.bytes), "m").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.name;
    EXPECT_EQ(std::string(status.message()), bad.message) << bad.name;
  }
}

TEST(GgufMalformedTest, NestingUpToFourIsRead) {
  const std::string bytes = OneValue("k", 9, NestedArrays(4));
  EXPECT_TRUE(GgufFile::Parse(AsBytes(bytes), "m").ok());
}

std::string SmallFile() {
  GgufWriter writer;
  writer.AddString("general.architecture", "llama");
  writer.AddUint32("general.alignment", 32);
  writer.AddStrings("tokenizer.ggml.tokens", {"a", "b", "ab", "<|end|>"});
  writer.AddInt32s("tokenizer.ggml.token_type", {1, 1, 1, 3});
  writer.AddRaw("nested", 9, NestedArrays(3));
  writer.AddTensor("norm", {16}, kGgmlF32, std::string(64, 'n'));
  writer.AddTensor("matrix", {64, 4}, kGgmlQ4_1, std::string(160, 'w'));
  return writer.Serialize();
}

// Touches everything a caller can ask for.
void ReadAll(const GgufFile& file) {
  size_t total = 0;
  for (const std::string_view key : file.keys()) {
    total += file.Describe(key).size();
    total += file.Strings(key).ok() + file.Integers(key).ok() +
             file.Floats(key).ok() + file.Unsigned(key).ok() +
             file.Float(key).ok() + file.Bool(key).ok() + file.String(key).ok();
  }
  for (const GgufTensor& tensor : file.tensors()) {
    for (const std::byte b : tensor.data) total += static_cast<size_t>(b);
  }
  ASSERT_GT(total + 1, 0u);
}

TEST(GgufMalformedTest, EveryTruncationIsACleanError) {
  const std::string whole = SmallFile();
  ASSERT_TRUE(GgufFile::Parse(AsBytes(whole), "m").ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    // A heap copy of the exact size lets AddressSanitizer see any overread.
    const std::vector<char> copy(whole.begin(), whole.begin() + size);
    const auto file = GgufFile::Parse(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(copy.data()),
                            copy.size()),
        "m");
    ASSERT_FALSE(file.ok()) << size;
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(GgufMalformedTest, RandomDamageNeverReadsOutOfRange) {
  const std::string whole = SmallFile();
  std::mt19937_64 random(20240607);
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<char> damaged(whole.begin(), whole.end());
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) {
      char& byte = damaged[random() % damaged.size()];
      byte = random() % 2 == 0 ? static_cast<char>(byte ^ (1 << random() % 8))
                               : static_cast<char>(random());
    }
    const auto file = GgufFile::Parse(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(damaged.data()),
                            damaged.size()),
        "m");
    if (file.ok()) {
      ++parsed;
      ReadAll(**file);
    }
  }
  EXPECT_GT(parsed, 1000);
  EXPECT_LT(parsed, 19000);
}

}  // namespace
}  // namespace baton
