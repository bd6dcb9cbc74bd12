#include "router/chat_template/tokenize_chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::router {
namespace {

using ::testing::ElementsAre;

// Records what it is asked.
class RecordingTokenizer : public Tokenizer {
 public:
  absl::StatusOr<std::vector<TokenId>> Encode(
      std::string_view text, const EncodeOptions& options) const override {
    text_ = text;
    options_ = options;
    literal_.clear();
    for (const TextRange& range : options.literal) {
      literal_.emplace_back(range.begin, range.end);
    }
    return std::vector<TokenId>{7};
  }
  std::string_view TokenBytes(TokenId) const override { return ""; }
  bool IsSpecial(TokenId) const override { return false; }
  size_t vocabulary_size() const override { return 8; }
  std::optional<TokenId> bos() const override { return std::nullopt; }
  std::optional<TokenId> eos() const override { return std::nullopt; }
  const std::vector<TokenId>& end_of_generation() const override {
    return none_;
  }

  mutable std::string text_;
  mutable EncodeOptions options_;
  mutable std::vector<std::pair<size_t, size_t>> literal_;

 private:
  std::vector<TokenId> none_;
};

const std::vector<RenderedPiece> kPieces = {
    {"<s>", false}, {"hi", true}, {"<e>", false}, {"yo!", true}};

TEST(TokenizeChatTest, TextIsEncodedAsAWhole) {
  const RecordingTokenizer tokenizer;
  EXPECT_THAT(*TokenizeRendered(tokenizer, kPieces, false), ElementsAre(7));
  EXPECT_EQ(tokenizer.text_, "<s>hi<e>yo!");
  EXPECT_TRUE(tokenizer.options_.parse_special);
  EXPECT_FALSE(tokenizer.options_.add_special);
  EXPECT_THAT(tokenizer.literal_, ElementsAre());
}

TEST(TokenizeChatTest, SafeModeMarksUserRanges) {
  const RecordingTokenizer tokenizer;
  EXPECT_TRUE(TokenizeRendered(tokenizer, kPieces, true).ok());
  EXPECT_THAT(tokenizer.literal_,
              ElementsAre(std::pair(3, 5), std::pair(8, 11)));
}

TEST(TokenizeChatTest, JoinsPieces) {
  EXPECT_EQ(JoinRendered(kPieces), "<s>hi<e>yo!");
  EXPECT_EQ(JoinRendered({}), "");
}

}  // namespace
}  // namespace baton::router
