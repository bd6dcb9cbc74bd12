#ifndef BATON_TESTS_SUPPORT_GGUF_WRITER_H_
#define BATON_TESTS_SUPPORT_GGUF_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace baton {

// ggml_type numbers that tests write; see kernels/api/tensor.h for the rest.
inline constexpr uint32_t kGgmlF32 = 0;
inline constexpr uint32_t kGgmlQ4_1 = 3;
inline constexpr uint32_t kGgmlQ8_0 = 8;

// Lays out a GGUF v3 file in memory, as the `gguf` Python package does. It
// checks nothing on purpose: tests use it to write malformed files too.
class GgufWriter {
 public:
  // What the header says where it is to differ from the truth.
  struct HeaderOverride {
    std::string magic = "GGUF";
    uint32_t version = 3;
    std::optional<uint64_t> tensor_count;
    std::optional<uint64_t> metadata_count;
  };

  void AddBool(std::string_view key, bool value);
  void AddUint32(std::string_view key, uint32_t value);
  void AddUint64(std::string_view key, uint64_t value);
  void AddFloat32(std::string_view key, float value);
  void AddString(std::string_view key, std::string_view value);
  void AddStrings(std::string_view key, absl::Span<const std::string> values);
  void AddInt32s(std::string_view key, absl::Span<const int32_t> values);
  void AddFloat32s(std::string_view key, absl::Span<const float> values);
  // Key, value type number and value bytes as given.
  void AddRaw(std::string_view key, uint32_t value_type,
              std::string_view value_bytes);

  // `shape` in ggml order: the row length first. `data` is copied.
  void AddTensor(std::string_view name, absl::Span<const uint64_t> shape,
                 uint32_t ggml_type, std::string_view data);

  // Forget what was added under this name; no-ops for unknown ones.
  void RemoveKey(std::string_view key);
  void RemoveTensor(std::string_view name);

  // The bytes of all tensors, in order, without padding.
  std::string TensorData() const;

  std::string Serialize() const { return Serialize(HeaderOverride()); }
  std::string Serialize(const HeaderOverride& header) const;
  // UNAVAILABLE when the file cannot be written.
  absl::Status WriteTo(const std::string& path) const;

 private:
  struct Metadata {
    std::string key;
    uint32_t type;
    std::string bytes;
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> shape;
    uint32_t type;
    std::string data;
  };

  std::vector<Metadata> metadata_;
  std::vector<Tensor> tensors_;
};

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_GGUF_WRITER_H_
