#include "common/base/sha256.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

namespace baton {
namespace {

std::string Hex(const Sha256Digest& digest) {
  return absl::BytesToHexString(std::string(digest.begin(), digest.end()));
}

// FIPS 180-4 examples.
TEST(Sha256Test, KnownAnswers) {
  EXPECT_EQ(Hex(Sha256Of("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, PiecesEqualWhole) {
  EXPECT_EQ(Sha256().Update("ab").Update("").Update("c").Finish(),
            Sha256Of("abc"));
}

TEST(Sha256Test, NumbersAreLittleEndianAndFieldsCarryLengths) {
  EXPECT_EQ(Hex(Sha256()
                    .UpdateU32(0x01020304)
                    .UpdateU64(5)
                    .UpdateField("xyz")
                    .Finish()),
            "efa34159956ecb9b2cde8b8edd269e27cc5185577a041d42f48fc5a49371f592");
}

TEST(Sha256Test, MovedStateContinues) {
  Sha256 first;
  first.Update("ab");
  Sha256 second(std::move(first));
  EXPECT_EQ(second.Update("c").Finish(), Sha256Of("abc"));
}

}  // namespace
}  // namespace baton
