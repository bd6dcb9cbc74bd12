#include "common/tokenizer/end_of_generation.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(EndOfGenerationTest, KnowsEndMarkers) {
  for (const char* text : {"<|endoftext|>", "<|im_end|>", "<|eot_id|>",
                           "<|end_of_text|>", "<|end|>", "<reponame>"}) {
    EXPECT_TRUE(IsEndOfGenerationText(text)) << text;
  }
}

TEST(EndOfGenerationTest, OtherMarkersEndNothing) {
  for (const char* text : {"<|im_start|>", "<repo_name>", "<file_sep>",
                           "<|begin_of_text|>", "", "im_end"}) {
    EXPECT_FALSE(IsEndOfGenerationText(text)) << text;
  }
}

}  // namespace
}  // namespace baton
