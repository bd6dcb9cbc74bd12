#include "common/worker/vocabulary_adapter.h"

#include <gtest/gtest.h>

#include "common/model_file/gguf.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

TEST(VocabularyAdapter, FollowsTheTokenizer) {
  auto path = WriteTinyModel(testing::TempDir(), {});
  ASSERT_TRUE(path.ok()) << path.status();
  auto file = GgufFile::Open(*path);
  ASSERT_TRUE(file.ok()) << file.status();
  auto owned = Tokenizer::FromGguf(**file);
  ASSERT_TRUE(owned.ok()) << owned.status();
  const Tokenizer& tokenizer = **owned;
  const std::vector<TokenId> ends = tokenizer.end_of_generation();
  auto vocabulary = VocabularyOf(*std::move(owned));
  EXPECT_EQ(vocabulary->size, 272u);
  EXPECT_EQ(vocabulary->end_of_generation, ends);
  EXPECT_EQ(vocabulary->bytes(3 + 'a', true).size(), 1u);
  ASSERT_TRUE(tokenizer.IsSpecial(0));
  EXPECT_EQ(vocabulary->bytes(0, true), "");
  EXPECT_EQ(vocabulary->bytes(0, false), tokenizer.TokenBytes(0));
  EXPECT_NE(vocabulary->bytes(0, false), "");
}

}  // namespace
}  // namespace baton
