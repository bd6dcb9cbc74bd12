#ifndef BATON_TESTS_SUPPORT_MODEL_UNDER_TEST_H_
#define BATON_TESTS_SUPPORT_MODEL_UNDER_TEST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/kv_cache/kv_memory.h"
#include "common/model/model.h"
#include "common/tokens/token.h"
#include "kernels/api/backend.h"

namespace baton {

// Where the real model is: $BATON_MODEL_DIR or the build's models folder.
// Tests that need it fail, and say how to get it, when it is not there.
std::string RealModelPath();

// A model with the backend that runs it.
struct ModelUnderTest {
  // Errors of GgufFile::Open and Model::Load.
  static absl::StatusOr<ModelUnderTest> Load(
      const std::string& path, std::unique_ptr<kernels::Backend> backend,
      const ModelOptions& options);

  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<Model> model;
};

// KV blocks of one sequence, zero at first.
class SequenceKv {
 public:
  // Room for `tokens` positions. Aborts when memory is short.
  SequenceKv(const kernels::KvLayout& layout, uint64_t tokens);

  const std::vector<std::byte*>& blocks() const { return blocks_; }

 private:
  std::unique_ptr<KvMemory> memory_;
  std::vector<std::byte*> blocks_;
};

// Feeds `tokens` from position 0, `chunk` at a time, and hands over the logits
// of every position from `first_wanted` on. The span is valid in the call.
using LogitsVisitor =
    std::function<void(int position, absl::Span<const float> logits)>;
void ForEachLogits(const Model& model, absl::Span<const TokenId> tokens,
                   int chunk, int first_wanted, const LogitsVisitor& visit);

// Index of the largest value; the lower one at a tie.
TokenId ArgMax(absl::Span<const float> logits);
// log Σ exp in double precision, independent of the kernels.
double LogSumExp(absl::Span<const float> logits);

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_MODEL_UNDER_TEST_H_
