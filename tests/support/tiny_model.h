#ifndef BATON_TESTS_SUPPORT_TINY_MODEL_H_
#define BATON_TESTS_SUPPORT_TINY_MODEL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tests/support/gguf_writer.h"

namespace baton {

// A tiny, random but fully deterministic llama model: 64 wide, 4 heads and 2
// KV heads of 16, FFN 128, byte-level BPE of 272 tokens (ids 0..2 control
// tokens, 3..258 the bytes, 259..271 merges). With the defaults the file is
// bit for bit the one the golden references were made from.
struct TinyModelOptions {
  enum class Weights {
    kF32,
    kQ4_1,  // block matrices; the embedding is Q8_0 as in SmolLM2's file
  };
  Weights weights = Weights::kF32;
  uint32_t context = 256;
  uint32_t layers = 2;
  uint32_t vocabulary = 272;  // >= 272; further tokens are "<extra_N>"
  bool untied = false;        // a separate output.weight
  uint64_t seed = 36;
  // Its embedding row is NaN. Wants `untied` (or every logit row has a NaN)
  // and kF32.
  std::optional<uint32_t> poisoned_token = std::nullopt;
};

// The file's content, so that tests can change it before it is written.
GgufWriter TinyModel(const TinyModelOptions& options);

// Writes the file into `directory` and returns its path, which names the
// options. UNAVAILABLE when it cannot be written.
absl::StatusOr<std::string> WriteTinyModel(const std::string& directory,
                                           const TinyModelOptions& options);

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_TINY_MODEL_H_
