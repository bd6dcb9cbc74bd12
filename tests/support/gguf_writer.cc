#include "tests/support/gguf_writer.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace baton {
namespace {

constexpr size_t kAlignment = 32;

enum ValueType : uint32_t {
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
};

template <class T>
void Put(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutString(std::string* out, std::string_view value) {
  Put<uint64_t>(out, value.size());
  out->append(value);
}

void Pad(std::string* out) {
  out->resize((out->size() + kAlignment - 1) / kAlignment * kAlignment);
}

std::string ArrayHead(ValueType element, uint64_t count) {
  std::string bytes;
  Put<uint32_t>(&bytes, element);
  Put<uint64_t>(&bytes, count);
  return bytes;
}

template <class T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

}  // namespace

void GgufWriter::AddRaw(std::string_view key, uint32_t value_type,
                        std::string_view value_bytes) {
  metadata_.push_back({std::string(key), value_type, std::string(value_bytes)});
}

void GgufWriter::AddBool(std::string_view key, bool value) {
  AddRaw(key, kBool, BytesOf<uint8_t>(value));
}

void GgufWriter::AddUint32(std::string_view key, uint32_t value) {
  AddRaw(key, kUint32, BytesOf(value));
}

void GgufWriter::AddUint64(std::string_view key, uint64_t value) {
  AddRaw(key, kUint64, BytesOf(value));
}

void GgufWriter::AddFloat32(std::string_view key, float value) {
  AddRaw(key, kFloat32, BytesOf(value));
}

void GgufWriter::AddString(std::string_view key, std::string_view value) {
  std::string bytes;
  PutString(&bytes, value);
  AddRaw(key, kString, bytes);
}

void GgufWriter::AddStrings(std::string_view key,
                            absl::Span<const std::string> values) {
  std::string bytes = ArrayHead(kString, values.size());
  for (const std::string& value : values) PutString(&bytes, value);
  AddRaw(key, kArray, bytes);
}

void GgufWriter::AddInt32s(std::string_view key,
                           absl::Span<const int32_t> values) {
  std::string bytes = ArrayHead(kInt32, values.size());
  for (int32_t value : values) Put(&bytes, value);
  AddRaw(key, kArray, bytes);
}

void GgufWriter::AddFloat32s(std::string_view key,
                             absl::Span<const float> values) {
  std::string bytes = ArrayHead(kFloat32, values.size());
  for (float value : values) Put(&bytes, value);
  AddRaw(key, kArray, bytes);
}

void GgufWriter::AddTensor(std::string_view name,
                           absl::Span<const uint64_t> shape, uint32_t ggml_type,
                           std::string_view data) {
  tensors_.push_back({std::string(name),
                      {shape.begin(), shape.end()},
                      ggml_type,
                      std::string(data)});
}

void GgufWriter::RemoveKey(std::string_view key) {
  std::erase_if(metadata_, [&](const Metadata& m) { return m.key == key; });
}

void GgufWriter::RemoveTensor(std::string_view name) {
  std::erase_if(tensors_, [&](const Tensor& t) { return t.name == name; });
}

std::string GgufWriter::TensorData() const {
  std::string data;
  for (const Tensor& tensor : tensors_) data += tensor.data;
  return data;
}

std::string GgufWriter::Serialize(const HeaderOverride& header) const {
  std::string file = header.magic;
  Put<uint32_t>(&file, header.version);
  Put<uint64_t>(&file, header.tensor_count.value_or(tensors_.size()));
  Put<uint64_t>(&file, header.metadata_count.value_or(metadata_.size()));
  for (const Metadata& entry : metadata_) {
    PutString(&file, entry.key);
    Put(&file, entry.type);
    file.append(entry.bytes);
  }

  std::string data;
  for (const Tensor& tensor : tensors_) {
    PutString(&file, tensor.name);
    Put<uint32_t>(&file, tensor.shape.size());
    for (uint64_t extent : tensor.shape) Put(&file, extent);
    Put(&file, tensor.type);
    Put<uint64_t>(&file, data.size());
    data.append(tensor.data);
    Pad(&data);
  }
  Pad(&file);
  return file + data;
}

absl::Status GgufWriter::WriteTo(const std::string& path) const {
  // A file of that name may be mapped by others, and stays as it is for them.
  const std::string draft = absl::StrCat(path, ".", getpid());
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  out << Serialize();
  out.close();
  if (!out || std::rename(draft.c_str(), path.c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path));
  }
  return absl::OkStatus();
}

}  // namespace baton
