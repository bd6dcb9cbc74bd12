#include "common/model_file/gguf.h"

#include <bit>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/model_file/gguf_parser.h"
#include "common/model_file/mapped_file.h"

namespace baton {
namespace {

template <class T>
T Load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

struct Integer {
  uint64_t magnitude = 0;
  bool negative = false;
};

Integer FromSigned(int64_t value) {
  return value < 0 ? Integer{0 - static_cast<uint64_t>(value), true}
                   : Integer{static_cast<uint64_t>(value), false};
}

std::optional<Integer> LoadInteger(GgufValueType type, const std::byte* bytes) {
  switch (type) {
    case GgufValueType::kU8:
      return Integer{Load<uint8_t>(bytes)};
    case GgufValueType::kU16:
      return Integer{Load<uint16_t>(bytes)};
    case GgufValueType::kU32:
      return Integer{Load<uint32_t>(bytes)};
    case GgufValueType::kU64:
      return Integer{Load<uint64_t>(bytes)};
    case GgufValueType::kI8:
      return FromSigned(Load<int8_t>(bytes));
    case GgufValueType::kI16:
      return FromSigned(Load<int16_t>(bytes));
    case GgufValueType::kI32:
      return FromSigned(Load<int32_t>(bytes));
    case GgufValueType::kI64:
      return FromSigned(Load<int64_t>(bytes));
    default:
      return std::nullopt;
  }
}

std::string_view TakeString(absl::Span<const std::byte>& payload) {
  const uint64_t length = Load<uint64_t>(payload.data());
  const std::string_view text(reinterpret_cast<const char*>(payload.data()) + 8,
                              length);
  payload.remove_prefix(8 + length);
  return text;
}

std::string TypeName(const GgufValue& value) {
  return value.type == GgufValueType::kArray
             ? StrCat(GgufValueTypeName(value.element), "[", value.count, "]")
             : std::string(GgufValueTypeName(value.type));
}

}  // namespace

uint64_t GgufTensor::elements() const {
  uint64_t product = 1;
  for (const uint64_t size : shape) product *= size;
  return product;
}

struct GgufFile::Impl {
  std::string path;
  std::unique_ptr<MappedFile> mapping;  // null for bytes in memory
  absl::Span<const std::byte> bytes;
  GgufContents contents;
  mutable std::mutex hashing;
  mutable std::string hash;  // hashing

  absl::StatusOr<const GgufValue*> Find(std::string_view key) const {
    const auto it = contents.values.find(key);
    if (it == contents.values.end()) {
      return absl::NotFoundError(StrCat(path, ": ", key, ": missing"));
    }
    return &it->second;
  }

  absl::Status Expected(std::string_view key, const GgufValue& value,
                        std::string_view allowed) const {
    return absl::InvalidArgumentError(
        StrCat(path, "@", value.offset, ": ", key, ": expected ", allowed,
               " (got ", TypeName(value), ", allowed ", allowed, ")"));
  }

  absl::StatusOr<const GgufValue*> FindScalar(std::string_view key,
                                              GgufValueType type) const {
    BATON_ASSIGN_OR_RETURN(const GgufValue* value, Find(key));
    if (value->type != type) {
      return Expected(key, *value, GgufValueTypeName(type));
    }
    return value;
  }

  absl::StatusOr<const GgufValue*> FindArray(std::string_view key,
                                             GgufValueType element) const {
    BATON_ASSIGN_OR_RETURN(const GgufValue* value, Find(key));
    if (value->type != GgufValueType::kArray || value->element != element) {
      return Expected(key, *value,
                      StrCat(GgufValueTypeName(element), " array"));
    }
    return value;
  }
};

GgufFile::GgufFile() : impl_(std::make_unique<Impl>()) {}
GgufFile::~GgufFile() = default;

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Open(
    const std::string& path) {
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> mapping,
                         MappedFile::Open(path));
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<GgufFile> file,
                         Parse(mapping->bytes(), path));
  file->impl_->mapping = std::move(mapping);
  return file;
}

absl::StatusOr<std::unique_ptr<GgufFile>> GgufFile::Parse(
    absl::Span<const std::byte> bytes, std::string label) {
  std::unique_ptr<GgufFile> file(new GgufFile());
  BATON_ASSIGN_OR_RETURN(file->impl_->contents, ParseGguf(bytes, label));
  file->impl_->path = std::move(label);
  file->impl_->bytes = bytes;
  return file;
}

const std::string& GgufFile::path() const { return impl_->path; }

uint64_t GgufFile::file_bytes() const { return impl_->bytes.size(); }

absl::StatusOr<uint64_t> GgufFile::Unsigned(std::string_view key) const {
  BATON_ASSIGN_OR_RETURN(const GgufValue* value, impl_->Find(key));
  const std::optional<Integer> integer =
      LoadInteger(value->type, value->payload.data());
  if (!integer.has_value()) {
    return impl_->Expected(key, *value, "unsigned integer");
  }
  if (integer->negative) {
    return absl::InvalidArgumentError(
        StrCat(impl_->path, "@", value->offset, ": ", key, ": negative (got -",
               integer->magnitude, ", allowed at least 0)"));
  }
  return integer->magnitude;
}

absl::StatusOr<double> GgufFile::Float(std::string_view key) const {
  BATON_ASSIGN_OR_RETURN(const GgufValue* value, impl_->Find(key));
  switch (value->type) {
    case GgufValueType::kF32:
      return Load<float>(value->payload.data());
    case GgufValueType::kF64:
      return Load<double>(value->payload.data());
    default:
      return impl_->Expected(key, *value, "f32 or f64");
  }
}

absl::StatusOr<bool> GgufFile::Bool(std::string_view key) const {
  BATON_ASSIGN_OR_RETURN(const GgufValue* value,
                         impl_->FindScalar(key, GgufValueType::kBool));
  return Load<uint8_t>(value->payload.data()) != 0;
}

absl::StatusOr<std::string_view> GgufFile::String(std::string_view key) const {
  BATON_ASSIGN_OR_RETURN(const GgufValue* value,
                         impl_->FindScalar(key, GgufValueType::kString));
  absl::Span<const std::byte> payload = value->payload;
  return TakeString(payload);
}

absl::StatusOr<std::vector<std::string_view>> GgufFile::Strings(
    std::string_view key) const {
  BATON_ASSIGN_OR_RETURN(const GgufValue* value,
                         impl_->FindArray(key, GgufValueType::kString));
  std::vector<std::string_view> strings;
  strings.reserve(value->count);
  absl::Span<const std::byte> payload = value->payload;
  for (uint64_t i = 0; i < value->count; ++i) {
    strings.push_back(TakeString(payload));
  }
  return strings;
}

absl::StatusOr<std::vector<int64_t>> GgufFile::Integers(
    std::string_view key) const {
  BATON_ASSIGN_OR_RETURN(const GgufValue* value, impl_->Find(key));
  const size_t width = GgufValueBytes(value->element);
  std::vector<int64_t> integers;
  if (value->type != GgufValueType::kArray || width == 0) {
    return impl_->Expected(key, *value, "integer array");
  }
  integers.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const std::optional<Integer> integer =
        LoadInteger(value->element, value->payload.data() + i * width);
    if (!integer.has_value()) {
      return impl_->Expected(key, *value, "integer array");
    }
    if (!integer->negative && integer->magnitude > INT64_MAX) {
      return absl::InvalidArgumentError(
          StrCat(impl_->path, "@", value->offset + i * width, ": ", key, "[", i,
                 "]: out of range (got ", integer->magnitude,
                 ", allowed at most ", INT64_MAX, ")"));
    }
    integers.push_back(static_cast<int64_t>(
        integer->negative ? 0 - integer->magnitude : integer->magnitude));
  }
  return integers;
}

absl::StatusOr<std::vector<float>> GgufFile::Floats(
    std::string_view key) const {
  BATON_ASSIGN_OR_RETURN(const GgufValue* value,
                         impl_->FindArray(key, GgufValueType::kF32));
  std::vector<float> floats(value->count);
  if (!floats.empty()) {
    std::memcpy(floats.data(), value->payload.data(), value->payload.size());
  }
  return floats;
}

bool GgufFile::Has(std::string_view key) const {
  return impl_->contents.values.contains(key);
}

std::vector<std::string_view> GgufFile::keys() const {
  return impl_->contents.keys;
}

std::string GgufFile::Describe(std::string_view key) const {
  const absl::StatusOr<const GgufValue*> found = impl_->Find(key);
  if (!found.ok()) return "missing";
  const GgufValue& value = **found;
  if (value.type == GgufValueType::kArray) return TypeName(value);
  if (value.type == GgufValueType::kString) {
    constexpr size_t kShown = 60;
    absl::Span<const std::byte> payload = value.payload;
    const std::string_view text = TakeString(payload);
    const std::string shown =
        absl::Utf8SafeCHexEscape(ToAbsl(text.substr(0, kShown)));
    return text.size() <= kShown
               ? shown
               : StrCat(shown, "... (", text.size(), " bytes)");
  }
  if (value.type == GgufValueType::kBool) {
    return *Bool(key) ? "true" : "false";
  }
  if (const auto integer = LoadInteger(value.type, value.payload.data())) {
    return StrCat(integer->negative ? "-" : "", integer->magnitude);
  }
  return StrCat(*Float(key));
}

const std::vector<GgufTensor>& GgufFile::tensors() const {
  return impl_->contents.tensors;
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  const auto it = impl_->contents.tensor_indices.find(name);
  return it == impl_->contents.tensor_indices.end()
             ? nullptr
             : &impl_->contents.tensors[it->second];
}

std::string GgufFile::Sha256(const std::function<bool()>& give_up) const {
  constexpr size_t kPiece = size_t{4} << 20;
  std::lock_guard lock(impl_->hashing);
  if (!impl_->hash.empty()) return impl_->hash;
  baton::Sha256 hash;
  for (size_t at = 0; at < impl_->bytes.size(); at += kPiece) {
    if (give_up && give_up()) return "";
    const absl::Span<const std::byte> piece = impl_->bytes.subspan(at, kPiece);
    hash.Update(piece);
    ReleasePages(piece);
  }
  const Sha256Digest digest = hash.Finish();
  impl_->hash.assign(digest.begin(), digest.end());
  return impl_->hash;
}

void GgufFile::ReleasePages(absl::Span<const std::byte> data) const {
  if (impl_->mapping) impl_->mapping->ReleasePages(data);
}

}  // namespace baton
