#ifndef BATON_COMMON_MODEL_MODEL_H_
#define BATON_COMMON_MODEL_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model_file/gguf.h"
#include "common/tokens/token.h"
#include "common/weights/load_options.h"
#include "kernels/api/backend.h"
#include "kernels/api/kv_layout.h"

namespace baton {

// Architecture numbers of a Llama-family decoder, read from llama.* metadata.
struct ModelConfig {
  std::string name;
  std::string architecture;  // "llama"
  int layers = 0;
  int width = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int ffn_width = 0;
  int vocabulary = 0;
  int context = 0;
  int rotary_dims = 0;
  float rms_epsilon = 0;
  double rope_base = 0;

  // Reads and checks: INVALID_ARGUMENT `llama.field: what (got G, allowed A)`.
  static absl::StatusOr<ModelConfig> FromGguf(const GgufFile& file);
  kernels::KvLayout kv_layout(kernels::KvType type) const;
};

struct ModelOptions {
  kernels::KvType kv_type = kernels::KvType::kF16;
  LoadOptions load = {};
};

// Consecutive positions of one sequence; like kernels::SequenceRows with the
// token ids and whether the last row's (or every row's) logits are wanted.
struct ForwardSpan {
  absl::Span<const TokenId> tokens;
  int first_position = 0;
  absl::Span<std::byte* const> blocks;
  enum class Logits { kNone, kLast, kAll } logits = Logits::kLast;
};

// Weights packed for a backend plus the forward pass. Immutable after Load.
class Model {
 public:
  // `backend` outlives the model. Peak memory stays near the packed size: the
  // file is read and packed a few megabytes at a time, while another thread
  // hashes it. INVALID_ARGUMENT names the tensor or
  // field; NOT_FOUND a missing tensor.
  static absl::StatusOr<std::unique_ptr<Model>> Load(
      const GgufFile& file, kernels::Backend* backend,
      const ModelOptions& options);
  ~Model();

  const ModelConfig& config() const;
  const kernels::KvLayout& kv_layout() const;
  kernels::Backend* backend() const;
  // 32 bytes: SHA-256 over file digest, architecture numbers, weight format, KV
  // type and layout, block size, numerics class.
  const std::string& fingerprint() const;
  size_t weight_bytes() const;

  // Activation memory for up to `max_rows` rows.
  class Scratch;
  std::unique_ptr<Scratch> NewScratch(int max_rows) const;

  // Appends KV for every row and leaves the wanted rows ready for Logits().
  // finite[i] tells whether what span i computed was free of NaN and infinity:
  // the keys and values of all its rows, the residuals of those with logits.
  // Arguments were validated by the caller (Engine).
  void Forward(absl::Span<const ForwardSpan> spans, Scratch* scratch,
               absl::Span<bool> finite) const;

  // Logits of `count` wanted rows of the last Forward with this scratch, from
  // the `first` on, counted in span order: [count, vocabulary], valid until the
  // next call. Their memory grows with the largest count asked for.
  const float* Logits(Scratch* scratch, int first, int count) const;

 private:
  Model();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Buffers of one forward pass at a time.
class Model::Scratch {
 public:
  virtual ~Scratch() = default;
};

}  // namespace baton

#endif  // BATON_COMMON_MODEL_MODEL_H_
