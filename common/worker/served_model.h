#ifndef BATON_COMMON_WORKER_SERVED_MODEL_H_
#define BATON_COMMON_WORKER_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/kv_cache/kv_memory.h"
#include "common/model/model.h"
#include "common/tokenizer/tokenizer.h"
#include "common/worker/resource_limits.h"
#include "common/worker/worker_options.h"
#include "kernels/api/backend.h"

namespace baton {

// What a worker serves, in memory.
struct ServedModel {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<Model> model;
  std::unique_ptr<KvMemory> memory;
  uint32_t max_context_tokens = 0;  // of a request; the pool holds one
  std::string pool_reason;          // why the pool has its size
};

// How many blocks a pool gets, and why. INVALID_ARGUMENT when not even one
// fits.
absl::StatusOr<Limit> ChoosePoolBlocks(const WorkerOptions& options,
                                       size_t block_bytes,
                                       const Limit& free_memory);

// The longest request to serve, `context` tokens unless the options say less.
// INVALID_ARGUMENT when they say more, or when a pool of `pool` blocks could
// not hold it.
absl::StatusOr<uint32_t> ChooseContext(const WorkerOptions& options,
                                       uint32_t context, const Limit& pool,
                                       size_t block_bytes);

// Reads the model file and maps the pool. `backend` outlives the result.
absl::StatusOr<ServedModel> LoadServedModel(const WorkerOptions& options,
                                            kernels::Backend* backend);

}  // namespace baton

#endif  // BATON_COMMON_WORKER_SERVED_MODEL_H_
