#include "tests/support/model_under_test.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/model_file/gguf.h"

namespace baton {

std::string RealModelPath() {
  const char* directory = std::getenv("BATON_MODEL_DIR");
  return std::string(directory != nullptr ? directory
                                          : BATON_DEFAULT_MODEL_DIR) +
         "/SmolLM2-135M-Instruct.Q4_1.gguf";
}

absl::StatusOr<ModelUnderTest> ModelUnderTest::Load(
    const std::string& path, std::unique_ptr<kernels::Backend> backend,
    const ModelOptions& options) {
  BATON_ASSIGN_OR_RETURN(const std::unique_ptr<GgufFile> file,
                         GgufFile::Open(path));
  BATON_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                         Model::Load(*file, backend.get(), options));
  return ModelUnderTest{std::move(backend), std::move(model)};
}

SequenceKv::SequenceKv(const kernels::KvLayout& layout, uint64_t tokens) {
  absl::StatusOr<std::unique_ptr<KvMemory>> memory =
      KvMemory::Create(layout, BlocksFor(tokens));
  BATON_CHECK(memory.ok());
  memory_ = *std::move(memory);
  for (uint32_t i = 0; i < memory_->blocks(); ++i) {
    memory_->Clear(BlockId(i));
    blocks_.push_back(memory_->Block(BlockId(i)));
  }
}

void ForEachLogits(const Model& model, absl::Span<const TokenId> tokens,
                   int chunk, int first_wanted, const LogitsVisitor& visit) {
  const SequenceKv kv(model.kv_layout(), tokens.size());
  const std::unique_ptr<Model::Scratch> scratch = model.NewScratch(chunk);
  const auto vocabulary = static_cast<size_t>(model.config().vocabulary);
  const int count = static_cast<int>(tokens.size());
  for (int first = 0; first < count; first += chunk) {
    const int rows = std::min(chunk, count - first);
    const bool wanted = first + rows > first_wanted;
    const ForwardSpan span{.tokens = tokens.subspan(first, rows),
                           .first_position = first,
                           .blocks = kv.blocks(),
                           .logits = wanted ? ForwardSpan::Logits::kAll
                                            : ForwardSpan::Logits::kNone};
    bool finite = false;
    model.Forward({&span, 1}, scratch.get(), {&finite, 1});
    BATON_CHECK(finite);
    if (!wanted) continue;
    const int begin = std::max(0, first_wanted - first);
    const float* logits = model.Logits(scratch.get(), begin, rows - begin);
    for (int i = begin; i < rows; ++i, logits += vocabulary) {
      visit(first + i, {logits, vocabulary});
    }
  }
}

TokenId ArgMax(absl::Span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) -
                              logits.begin());
}

double LogSumExp(absl::Span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

}  // namespace baton
