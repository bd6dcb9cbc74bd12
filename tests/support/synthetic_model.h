#ifndef BATON_TESTS_SUPPORT_SYNTHETIC_MODEL_H_
#define BATON_TESTS_SUPPORT_SYNTHETIC_MODEL_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace baton {

// A llama model of any size with random weights, for benchmarks and for loads
// of a real size: the shape is what counts, the text it makes is noise. The
// same options give the same bytes. Defaults: a 1.1 B Llama shape.
struct SyntheticModelOptions {
  enum class Weights { kF32, kF16, kQ4_0, kQ4_1, kQ8_0 };
  Weights weights = Weights::kQ4_0;  // of every matrix
  uint32_t layers = 22;
  uint32_t width = 2048;  // a multiple of 32 and of `heads`
  uint32_t heads = 32;    // a multiple of `kv_heads`
  uint32_t kv_heads = 4;
  uint32_t ffn_width = 5632;  // a multiple of 32
  uint32_t vocabulary = 32000;
  uint32_t context = 8192;
  uint64_t seed = 1;
};

// Writes the file into `directory` and returns its path, which names the
// options. INVALID_ARGUMENT for widths that do not divide as said, UNAVAILABLE
// when it cannot be written. Needs as much memory as the file is long, twice.
absl::StatusOr<std::string> WriteSyntheticModel(
    const std::string& directory, const SyntheticModelOptions& options);

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_SYNTHETIC_MODEL_H_
