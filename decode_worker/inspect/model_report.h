#ifndef BATON_DECODE_WORKER_INSPECT_MODEL_REPORT_H_
#define BATON_DECODE_WORKER_INSPECT_MODEL_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/model/model.h"
#include "common/model_file/gguf.h"
#include "common/tokens/token.h"
#include "common/weights/load_options.h"
#include "kernels/api/kv_layout.h"
#include "kernels/api/tensor.h"

namespace baton {

// What a GGUF file holds and whether Baton serves it. Only the file's metadata
// and tensor table are read, no weights.
struct ModelReport {
  struct TypeTotal {
    std::string type;  // "Q4_1"
    uint64_t tensors = 0;
    uint64_t elements = 0;
    uint64_t bytes = 0;
  };
  struct TokenizerFacts {
    std::string kind;           // tokenizer.ggml.model
    std::string pre_tokenizer;  // tokenizer.ggml.pre
    uint64_t vocabulary = 0;
    std::optional<TokenId> bos;
    std::optional<TokenId> eos;
    std::vector<TokenId> end_of_generation;
  };

  // Packed weights in memory.
  struct WeightMemory {
    WeightFormat format = WeightFormat::kFile;
    uint64_t bytes = 0;
    uint64_t int8_matrices = 0;  // converted ones
  };
  // Memory that a backend takes for a matrix of a valid shape.
  using PackedBytes = absl::FunctionRef<size_t(const kernels::MatrixShape&)>;

  static ModelReport Of(const GgufFile& file, PackedBytes packed_bytes);

  // Bytes of one token's K and V in all layers, scales included; 0 without a
  // configuration.
  uint64_t KvBytesPerToken(kernels::KvType type) const;
  // Tokens, in whole blocks, that a pool of `pool_bytes` holds.
  uint64_t KvTokens(kernels::KvType type, uint64_t pool_bytes) const;

  std::string path;
  uint64_t file_bytes = 0;
  std::string architecture;           // as the file says, "" when it does not
  std::optional<ModelConfig> config;  // when the architecture is served
  std::vector<TypeTotal> types;       // by bytes, descending
  std::vector<WeightMemory> weights;  // formats in which the file can be loaded
  std::optional<TokenizerFacts> tokenizer;
  bool chat_template = false;
  std::vector<std::string> refusals;  // empty: Baton serves the file
};

// For people; strings of the file are shown without control characters.
std::string ToText(const ModelReport& report,
                   std::optional<uint64_t> pool_bytes);

}  // namespace baton

#endif  // BATON_DECODE_WORKER_INSPECT_MODEL_REPORT_H_
