#include "common/worker/served_model.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/config/config_values.h"
#include "common/model_file/gguf.h"
#include "common/telemetry/log.h"
#include "common/worker/load_progress.h"

namespace baton {
namespace {

// Other workers of the same machine size their pools from the same number.
constexpr uint64_t kFreeMemoryShare = 4;
constexpr uint64_t kMaxBlocks = uint64_t{1} << 24;

// Of a pool whose size is given, before the weights are read, which takes
// long; else its size is what they leave.
absl::Status CheckGivenPool(const WorkerOptions& options, const GgufFile& file,
                            kernels::KvType kv_type) {
  if (options.kv_blocks == 0 && options.kv_pool_bytes == 0) {
    return absl::OkStatus();
  }
  BATON_ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::FromGguf(file));
  const size_t block_bytes = config.kv_layout(kv_type).block_bytes();
  BATON_ASSIGN_OR_RETURN(const Limit blocks,
                         ChoosePoolBlocks(options, block_bytes, Limit()));
  return ChooseContext(options, static_cast<uint32_t>(config.context), blocks,
                       block_bytes)
      .status();
}

}  // namespace

absl::StatusOr<Limit> ChoosePoolBlocks(const WorkerOptions& options,
                                       size_t block_bytes,
                                       const Limit& free_memory) {
  if (options.kv_blocks > 0) return Limit{options.kv_blocks, "--kv-blocks"};
  const bool given = options.kv_pool_bytes > 0;
  const uint64_t bytes =
      given ? options.kv_pool_bytes : free_memory.value / kFreeMemoryShare;
  const std::string reason =
      given ? "--kv-pool"
            : StrCat("a quarter of the ", free_memory.value >> 20, " MiB that ",
                     free_memory.reason, " leaves");
  const uint64_t blocks = std::min(bytes / block_bytes, kMaxBlocks);
  if (blocks == 0) {
    return absl::InvalidArgumentError(
        StrCat("kv-pool: ", FormatByteSize(bytes), " (", reason,
               ") hold no block of ", block_bytes, " bytes"));
  }
  return Limit{blocks, reason};
}

absl::StatusOr<uint32_t> ChooseContext(const WorkerOptions& options,
                                       uint32_t context, const Limit& pool,
                                       size_t block_bytes) {
  if (options.max_context > context) {
    return absl::InvalidArgumentError(StrCat("max-context: the model has ",
                                             context, " tokens (got ",
                                             options.max_context, ")"));
  }
  if (options.max_context > 0) context = options.max_context;
  const uint32_t needed = BlocksFor(context);
  if (pool.value < needed) {
    return absl::InvalidArgumentError(
        StrCat(options.kv_blocks > 0 ? "kv-blocks: " : "kv-pool: ", pool.value,
               " blocks (", pool.reason, ") hold ", pool.value * kBlockTokens,
               " tokens, one request may have ", context, ": give ", needed,
               " blocks (", FormatByteSize(needed * block_bytes),
               ") or a lower --max-context"));
  }
  return context;
}

absl::StatusOr<ServedModel> LoadServedModel(const WorkerOptions& options,
                                            kernels::Backend* backend) {
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<GgufFile> file,
                         GgufFile::Open(options.model));
  ServedModel served;
  BATON_ASSIGN_OR_RETURN(served.tokenizer, Tokenizer::FromGguf(*file));
  ModelOptions model_options;
  const auto kv_type = kernels::KvTypeNamed(options.kv_type);
  if (!kv_type.has_value()) {
    return absl::InvalidArgumentError(StrCat(
        "kv-type: expected one of f16, f32, i8 (got ", options.kv_type, ")"));
  }
  model_options.kv_type = *kv_type;
  const auto format = ParseWeightFormat(options.weights);
  if (!format.has_value()) {
    return absl::InvalidArgumentError(StrCat(
        "weights: expected one of file, int8 (got ", options.weights, ")"));
  }
  model_options.load.format = *format;
  BATON_RETURN_IF_ERROR(CheckGivenPool(options, *file, *kv_type));
  LoadProgress progress(MonotonicNow());
  model_options.load.progress = [&progress](uint64_t done, uint64_t total) {
    const auto line = progress.Line(done, total, MonotonicNow());
    if (line) log::Info("{}", *line);
  };
  BATON_ASSIGN_OR_RETURN(served.model,
                         Model::Load(*file, backend, model_options));
  const ModelConfig& config = served.model->config();
  if (static_cast<size_t>(config.vocabulary) !=
      served.tokenizer->vocabulary_size()) {
    return absl::InvalidArgumentError(
        StrCat(options.model, ": the tokenizer has ",
               served.tokenizer->vocabulary_size(), " tokens, the embedding ",
               config.vocabulary, " rows"));
  }
  BATON_ASSIGN_OR_RETURN(
      const Limit blocks,
      ChoosePoolBlocks(options, served.model->kv_layout().block_bytes(),
                       MemoryLimit(SystemFiles())));
  BATON_ASSIGN_OR_RETURN(
      served.max_context_tokens,
      ChooseContext(options, static_cast<uint32_t>(config.context), blocks,
                    served.model->kv_layout().block_bytes()));
  BATON_ASSIGN_OR_RETURN(served.memory,
                         KvMemory::Create(served.model->kv_layout(),
                                          static_cast<uint32_t>(blocks.value)));
  served.pool_reason = blocks.reason;
  return served;
}

}  // namespace baton
