#include "decode_worker/draft_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/model_file/gguf.h"
#include "kernels/cpu/cpu_backend.h"
#include "tests/support/tiny_model.h"

namespace baton::decode {
namespace {

using testing::HasSubstr;

class DraftModelTest : public testing::Test {
 protected:
  void SetUp() override {
    backend_ = *kernels::MakeCpuBackend({});
    const auto path = WriteTinyModel(testing::TempDir(), {});
    ASSERT_TRUE(path.ok()) << path.status();
    const auto file = *GgufFile::Open(*path);
    served_.tokenizer = *Tokenizer::FromGguf(*file);
    served_.model = *Model::Load(*file, backend_.get(), {});
    served_.memory = *KvMemory::Create(served_.model->kv_layout(), 20);
  }
  absl::StatusOr<std::unique_ptr<DraftModel>> Load(
      const TinyModelOptions& options, uint32_t kv_blocks = 0) {
    const auto path = WriteTinyModel(testing::TempDir(), options);
    EXPECT_TRUE(path.ok()) << path.status();
    return DraftModel::Load({.path = *path,
                             .kv_blocks = kv_blocks,
                             .max_rows = 40,
                             .step_tokens = 16},
                            served_, backend_.get());
  }

  std::unique_ptr<kernels::Backend> backend_;
  ServedModel served_;
};

TEST_F(DraftModelTest, ASmallerModelOfTheSameVocabularyGuesses) {
  const auto draft = Load({.context = 128, .layers = 1});
  ASSERT_TRUE(draft.ok()) << draft.status();
  const DraftModelOptions& options = (*draft)->options();
  EXPECT_EQ(options.blocks, 20u);
  EXPECT_EQ(options.max_positions, 128u);
  EXPECT_EQ(options.max_rows, 40u);
  EXPECT_EQ(options.tokens_per_step, 16u);
  EXPECT_TRUE(options.costs.has_value());
  EXPECT_NE((*draft)->parts().model, nullptr);
  EXPECT_EQ((*draft)->parts().memory->blocks(), 20u);
}

TEST_F(DraftModelTest, ItsPoolMayBoundItsPositions) {
  const auto draft = Load({.layers = 1}, 3);
  ASSERT_TRUE(draft.ok()) << draft.status();
  EXPECT_EQ((*draft)->options().blocks, 3u);
  EXPECT_EQ((*draft)->options().max_positions, 48u);
}

TEST_F(DraftModelTest, AnotherVocabularyIsRefused) {
  EXPECT_EQ(Load({.vocabulary = 300}).status(),
            absl::InvalidArgumentError(
                "draft-model: its vocabulary is not that of the served model: "
                "got 300 tokens, allowed 272"));
}

TEST_F(DraftModelTest, AFileThatIsNotThereIsNamed) {
  const auto draft = DraftModel::Load({.path = "/nowhere/draft.gguf"}, served_,
                                      backend_.get());
  EXPECT_THAT(draft.status().ToString(), HasSubstr("/nowhere/draft.gguf"));
}

// As many tokens, one of them another.
class OtherTokens : public Tokenizer {
 public:
  OtherTokens(const Tokenizer& same, TokenId other, bool special)
      : same_(same), other_(other), special_(special) {}
  absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view text, const EncodeOptions& options) const override {
    return same_.Encode(text, options);
  }
  std::string_view TokenBytes(TokenId id) const override {
    return id == other_ && !special_ ? "\xff!" : same_.TokenBytes(id);
  }
  bool IsSpecial(TokenId id) const override {
    return same_.IsSpecial(id) != (id == other_ && special_);
  }
  size_t vocabulary_size() const override { return same_.vocabulary_size(); }
  std::optional<TokenId> bos() const override { return same_.bos(); }
  std::optional<TokenId> eos() const override { return same_.eos(); }
  const std::vector<TokenId>& end_of_generation() const override {
    return same_.end_of_generation();
  }

 private:
  const Tokenizer& same_;
  const TokenId other_;
  const bool special_;
};

TEST_F(DraftModelTest, TheFirstDifferentTokenIsNamed) {
  const Tokenizer& served = *served_.tokenizer;
  EXPECT_EQ(CheckSameVocabulary(served, served), absl::OkStatus());
  EXPECT_EQ(CheckSameVocabulary(served, OtherTokens(served, 68, false)),
            absl::InvalidArgumentError(
                "draft-model: its vocabulary is not that of the served model: "
                "token 68 is \\xff!, allowed " +
                std::string(served.TokenBytes(68))));
  EXPECT_EQ(CheckSameVocabulary(served, OtherTokens(served, 68, true)),
            absl::InvalidArgumentError(
                "draft-model: its vocabulary is not that of the served model: "
                "token 68 is a control token"));
  EXPECT_THAT(
      CheckSameVocabulary(served, OtherTokens(served, 0, true)).ToString(),
      HasSubstr("token 0 is not a control token"));
}

}  // namespace
}  // namespace baton::decode
