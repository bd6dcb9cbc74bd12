#include "common/tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(ByteAlphabetTest, EveryByteSurvivesTheRoundTrip) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string spelled = AlphabetOfBytes(all);
  EXPECT_EQ(BytesOfAlphabet(spelled), all);
}

TEST(ByteAlphabetTest, KnownLetters) {
  EXPECT_EQ(AlphabetOfBytes(" the\n"), "\u0120the\u010a");
  EXPECT_EQ(AlphabetOfBytes("\xff"), "\u00ff");
  EXPECT_EQ(AlphabetOfBytes("\xad"), "\u0143");
}

TEST(ByteAlphabetTest, OtherCharactersSpellNothing) {
  EXPECT_EQ(BytesOfAlphabet(" "), std::nullopt);
  EXPECT_EQ(BytesOfAlphabet("a\u4f60"), std::nullopt);
  EXPECT_EQ(BytesOfAlphabet("\u0144"), std::nullopt);
  EXPECT_EQ(BytesOfAlphabet("\xff"), std::nullopt);
  EXPECT_EQ(BytesOfAlphabet(""), "");
}

}  // namespace
}  // namespace baton
