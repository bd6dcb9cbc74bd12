#ifndef BATON_COMMON_MODEL_FILE_GGUF_H_
#define BATON_COMMON_MODEL_FILE_GGUF_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace baton {

// Number of a tensor's element type as the file has it (ggml_type).
struct GgufTensor {
  std::string name;
  uint32_t type = 0;            // ggml_type; a supported one, see GgufTypes
  std::vector<uint64_t> shape;  // ggml order: shape[0] runs fastest
  absl::Span<const std::byte> data;  // inside the mapping

  uint64_t elements() const;
};

// A GGUF v3 file, mapped read-only. Everything is validated before it is
// handed out: checked arithmetic, counts and lengths against the remaining
// bytes before any allocation, shapes, alignment, offsets, duplicates.
//
// Errors are INVALID_ARGUMENT, `path@offset: field: what (got G, allowed A)`;
// NOT_FOUND / FAILED_PRECONDITION for what the file system says. Immutable and
// thread-safe after Open. Spans and string_views live as long as the object.
class GgufFile {
 public:
  static absl::StatusOr<std::unique_ptr<GgufFile>> Open(
      const std::string& path);
  // The same checks over bytes in memory, which must outlive the object.
  static absl::StatusOr<std::unique_ptr<GgufFile>> Parse(
      absl::Span<const std::byte> bytes, std::string label);
  ~GgufFile();
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  const std::string& path() const;
  uint64_t file_bytes() const;

  // Metadata by key. NOT_FOUND names the key; INVALID_ARGUMENT when the value
  // has another type. Unsigned accepts every integer type that fits.
  absl::StatusOr<uint64_t> Unsigned(std::string_view key) const;
  absl::StatusOr<double> Float(std::string_view key) const;
  absl::StatusOr<bool> Bool(std::string_view key) const;
  absl::StatusOr<std::string_view> String(std::string_view key) const;
  absl::StatusOr<std::vector<std::string_view>> Strings(
      std::string_view key) const;
  absl::StatusOr<std::vector<int64_t>> Integers(std::string_view key) const;
  absl::StatusOr<std::vector<float>> Floats(std::string_view key) const;
  bool Has(std::string_view key) const;
  // Keys in file order, for `baton inspect`.
  std::vector<std::string_view> keys() const;
  // Short human-readable form of a value ("f32[49152]", "llama", 8192).
  std::string Describe(std::string_view key) const;

  const std::vector<GgufTensor>& tensors() const;             // file order
  const GgufTensor* FindTensor(std::string_view name) const;  // or nullptr

  // SHA-256 over the whole file, 32 bytes; computed once, a few megabytes in
  // memory at a time. Empty if `give_up`, asked before each of these, says so;
  // the next call begins again. Thread-safe.
  std::string Sha256(const std::function<bool()>& give_up = nullptr) const;

  // Gives back the memory behind tensor data that will not be read again soon;
  // touching it later reads the file again. No effect after Parse().
  void ReleasePages(absl::Span<const std::byte> data) const;

 private:
  GgufFile();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton

#endif  // BATON_COMMON_MODEL_FILE_GGUF_H_
