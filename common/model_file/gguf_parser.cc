#include "common/model_file/gguf_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/model_file/ggml_type.h"
#include "common/model_file/gguf_cursor.h"

namespace baton {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint64_t kHeaderBytes = 24;
constexpr uint64_t kSmallestValueBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kSmallestTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxTensorNameBytes = 64;
constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
constexpr int kMaxArrayDepth = 4;
constexpr uint64_t kDefaultAlignment = 32;
constexpr std::string_view kAlignmentKey = "general.alignment";

std::string Printable(std::string_view text) {
  return absl::CHexEscape(ToAbsl(text.substr(0, 128)));
}

class Parser {
 public:
  Parser(absl::Span<const std::byte> bytes, const std::string& label)
      : bytes_(bytes), cursor_(bytes, label) {}

  absl::StatusOr<GgufContents> Parse() {
    BATON_RETURN_IF_ERROR(ReadHeader());
    for (uint64_t i = 0; i < value_count_; ++i) {
      BATON_RETURN_IF_ERROR(ReadKeyValue(i));
    }
    BATON_RETURN_IF_ERROR(ReadAlignment());
    offsets_.reserve(tensor_count_);
    contents_.tensors.reserve(tensor_count_);
    contents_.tensor_indices.reserve(tensor_count_);
    for (uint64_t i = 0; i < tensor_count_; ++i) {
      BATON_RETURN_IF_ERROR(ReadTensor(i));
    }
    BATON_RETURN_IF_ERROR(PlaceTensors());
    return std::move(contents_);
  }

 private:
  absl::Status ReadHeader() {
    if (bytes_.size() < kHeaderBytes) {
      return cursor_.Error("header", "too short", bytes_.size(),
                           StrCat("at least ", kHeaderBytes, " bytes"));
    }
    if (std::memcmp(bytes_.data(), "GGUF", 4) != 0) {
      const std::string_view magic(reinterpret_cast<const char*>(bytes_.data()),
                                   4);
      return cursor_.Error("magic", "not GGUF",
                           StrCat("'", Printable(magic), "'"), "'GGUF'");
    }
    cursor_.Take(4);
    BATON_ASSIGN_OR_RETURN(const uint32_t version,
                           cursor_.Number<uint32_t>("version"));
    if (version == __builtin_bswap32(kVersion)) {
      return cursor_.Error("version", "unsupported endianness", "big-endian",
                           "little-endian");
    }
    if (version != kVersion) {
      return cursor_.Error("version", "unsupported version", version, kVersion);
    }
    BATON_ASSIGN_OR_RETURN(tensor_count_,
                           cursor_.Count("tensor_count", kSmallestTensorBytes));
    BATON_ASSIGN_OR_RETURN(
        value_count_, cursor_.Count("metadata_kv_count", kSmallestValueBytes));
    return absl::OkStatus();
  }

  absl::Status ReadKeyValue(uint64_t index) {
    const std::string field = StrCat("metadata[", index, "]");
    BATON_ASSIGN_OR_RETURN(const std::string_view key,
                           cursor_.String(field + ".key", kMaxKeyBytes));
    if (key.empty()) {
      return cursor_.Error(field + ".key", "empty key", "''", "a name");
    }
    const std::string name = Printable(key);
    if (contents_.values.contains(key)) {
      return cursor_.Error(name, "duplicate key", "a second one", "one");
    }
    BATON_ASSIGN_OR_RETURN(const GgufValueType type, ReadType(name));
    BATON_ASSIGN_OR_RETURN(const GgufValue value, ReadValue(name, type, 0));
    contents_.keys.push_back(key);
    contents_.values.emplace(key, value);
    return absl::OkStatus();
  }

  absl::StatusOr<GgufValueType> ReadType(std::string_view field) {
    BATON_ASSIGN_OR_RETURN(const uint32_t type,
                           cursor_.Number<uint32_t>(field));
    if (type >= kGgufValueTypes) {
      return cursor_.Error(field, "unknown value type", type,
                           StrCat("0..", kGgufValueTypes - 1));
    }
    return static_cast<GgufValueType>(type);
  }

  absl::StatusOr<GgufValue> ReadValue(std::string_view field,
                                      GgufValueType type, int depth) {
    GgufValue value{type, type, 1, cursor_.offset(), {}};
    if (type == GgufValueType::kArray) {
      if (depth == kMaxArrayDepth) {
        return cursor_.Error(field, "arrays nested too deep", depth + 1,
                             StrCat("at most ", kMaxArrayDepth));
      }
      BATON_ASSIGN_OR_RETURN(value.element, ReadType(field));
      const size_t bytes = GgufValueBytes(value.element);
      BATON_ASSIGN_OR_RETURN(value.count,
                             cursor_.Count(field, bytes > 0 ? bytes : 8));
      value.offset = cursor_.offset();
    }
    BATON_RETURN_IF_ERROR(SkipElements(field, value, depth));
    value.payload =
        bytes_.subspan(value.offset, cursor_.offset() - value.offset);
    return value;
  }

  absl::Status SkipElements(std::string_view field, const GgufValue& value,
                            int depth) {
    if (const size_t bytes = GgufValueBytes(value.element); bytes > 0) {
      const uint64_t size = value.count * bytes;
      if (size > cursor_.remaining()) {
        return cursor_.Error(field, "truncated", cursor_.remaining(),
                             StrCat("at least ", size, " bytes"));
      }
      cursor_.Take(size);
      return absl::OkStatus();
    }
    for (uint64_t i = 0; i < value.count; ++i) {
      absl::Status status =
          value.element == GgufValueType::kString
              ? cursor_.String(field, kNoLimit).status()
              : ReadValue(field, GgufValueType::kArray, depth + 1).status();
      BATON_RETURN_IF_ERROR(std::move(status));
    }
    return absl::OkStatus();
  }

  absl::Status ReadAlignment() {
    const auto it = contents_.values.find(kAlignmentKey);
    if (it == contents_.values.end()) return absl::OkStatus();
    if (it->second.type != GgufValueType::kU32) {
      return cursor_.Error(kAlignmentKey, "wrong type",
                           GgufValueTypeName(it->second.type), "u32");
    }
    uint32_t alignment;
    std::memcpy(&alignment, it->second.payload.data(), sizeof(alignment));
    if (!std::has_single_bit(alignment) || alignment < 8 || alignment > 4096) {
      return cursor_.Error(kAlignmentKey, "out of range", alignment,
                           "power of two, 8..4096");
    }
    alignment_ = alignment;
    return absl::OkStatus();
  }

  absl::Status ReadTensor(uint64_t index) {
    const std::string field = StrCat("tensors[", index, "]");
    BATON_ASSIGN_OR_RETURN(
        const std::string_view name,
        cursor_.String(field + ".name", kMaxTensorNameBytes));
    if (name.empty()) {
      return cursor_.Error(field + ".name", "empty name", "''", "a name");
    }
    GgufTensor tensor;
    tensor.name = std::string(name);
    const std::string printable = StrCat("tensor ", Printable(name));
    if (!contents_.tensor_indices.emplace(name, index).second) {
      return cursor_.Error(printable, "duplicate tensor", "a second one",
                           "one");
    }
    BATON_RETURN_IF_ERROR(ReadShape(printable, tensor));
    BATON_ASSIGN_OR_RETURN(tensor.type, cursor_.Number<uint32_t>(printable));
    BATON_ASSIGN_OR_RETURN(const uint64_t offset,
                           cursor_.Number<uint64_t>(printable));
    offsets_.push_back(offset);
    contents_.tensors.push_back(std::move(tensor));
    return absl::OkStatus();
  }

  absl::Status ReadShape(const std::string& field, GgufTensor& tensor) {
    BATON_ASSIGN_OR_RETURN(const uint32_t dims,
                           cursor_.Number<uint32_t>(field + ".n_dims"));
    if (dims < 1 || dims > 4) {
      return cursor_.Error(field + ".n_dims", "out of range", dims, "1..4");
    }
    uint64_t elements = 1;
    for (uint32_t i = 0; i < dims; ++i) {
      const std::string part = StrCat(field, ".shape[", i, "]");
      BATON_ASSIGN_OR_RETURN(const uint64_t size,
                             cursor_.Number<uint64_t>(part));
      if (size == 0) {
        return cursor_.Error(part, "zero", size, "at least 1");
      }
      if (__builtin_mul_overflow(elements, size, &elements) ||
          elements > std::numeric_limits<int64_t>::max()) {
        return cursor_.Error(part, "element count overflows", size,
                             "a product below 2^63");
      }
      tensor.shape.push_back(size);
    }
    return absl::OkStatus();
  }

  absl::Status PlaceTensors() {
    const uint64_t data_start =
        (cursor_.offset() + alignment_ - 1) / alignment_ * alignment_;
    const uint64_t data_bytes =
        data_start < bytes_.size() ? bytes_.size() - data_start : 0;
    for (size_t i = 0; i < contents_.tensors.size(); ++i) {
      GgufTensor& tensor = contents_.tensors[i];
      const std::string field = StrCat("tensor ", Printable(tensor.name));
      BATON_ASSIGN_OR_RETURN(const uint64_t size, TensorBytes(field, tensor));
      if (offsets_[i] % alignment_ != 0) {
        return cursor_.Error(field + ".offset", "not aligned", offsets_[i],
                             StrCat("multiples of ", alignment_));
      }
      if (offsets_[i] > data_bytes || size > data_bytes - offsets_[i]) {
        return cursor_.Error(
            field, "data exceeds the file",
            StrCat("offset ", offsets_[i], ", ", size, " bytes"),
            StrCat("within ", data_bytes));
      }
      tensor.data = bytes_.subspan(data_start + offsets_[i], size);
    }
    return CheckOverlap();
  }

  absl::StatusOr<uint64_t> TensorBytes(const std::string& field,
                                       const GgufTensor& tensor) {
    const GgmlType* type = FindGgmlType(tensor.type);
    if (type == nullptr) {
      return cursor_.Error(field,
                           StrCat("type ", tensor.type, " not supported"),
                           tensor.type, SupportedGgmlTypeNames());
    }
    if (tensor.shape[0] % type->block_elements != 0) {
      return cursor_.Error(
          field + ".shape[0]", StrCat("row of partial ", type->name, " blocks"),
          tensor.shape[0], StrCat("multiples of ", type->block_elements));
    }
    const uint64_t blocks = tensor.elements() / type->block_elements;
    uint64_t size;
    if (__builtin_mul_overflow(blocks, uint64_t{type->block_bytes}, &size)) {
      return cursor_.Error(field, "byte count overflows", tensor.elements(),
                           "fewer than 2^64 bytes");
    }
    return size;
  }

  absl::Status CheckOverlap() {
    std::vector<const GgufTensor*> order;
    order.reserve(contents_.tensors.size());
    for (const GgufTensor& tensor : contents_.tensors) {
      order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(),
              [](const GgufTensor* a, const GgufTensor* b) {
                return a->data.data() < b->data.data();
              });
    for (size_t i = 1; i < order.size(); ++i) {
      const absl::Span<const std::byte> before = order[i - 1]->data;
      if (before.data() + before.size() > order[i]->data.data()) {
        return cursor_.Error(
            StrCat("tensor ", Printable(order[i]->name)), "data overlaps",
            StrCat("a share with ", Printable(order[i - 1]->name)),
            "bytes of its own");
      }
    }
    return absl::OkStatus();
  }

  absl::Span<const std::byte> bytes_;
  GgufCursor cursor_;
  uint64_t tensor_count_ = 0;
  uint64_t value_count_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  std::vector<uint64_t> offsets_;
  GgufContents contents_;
};

}  // namespace

std::string_view GgufValueTypeName(GgufValueType type) {
  constexpr std::string_view kNames[kGgufValueTypes] = {
      "u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
      "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<uint32_t>(type)];
}

size_t GgufValueBytes(GgufValueType type) {
  constexpr size_t kBytes[kGgufValueTypes] = {1, 1, 2, 2, 4, 4, 4,
                                              1, 0, 0, 8, 8, 8};
  return kBytes[static_cast<uint32_t>(type)];
}

absl::StatusOr<GgufContents> ParseGguf(absl::Span<const std::byte> bytes,
                                       const std::string& label) {
  return Parser(bytes, label).Parse();
}

}  // namespace baton
