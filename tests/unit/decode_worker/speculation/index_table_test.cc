#include "decode_worker/speculation/index_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace baton::decode {
namespace {

TEST(IndexTableTest, FindsWhatWasAdded) {
  std::mt19937 random(1);
  for (const uint64_t hash_bits : {64, 34, 33}) {  // few: collisions
    std::vector<uint64_t> keys;
    std::map<uint64_t, uint32_t> expected;
    IndexTable table;
    table.Reset(500);
    for (int i = 0; i < 2000; ++i) {
      const uint64_t key = random() % 700;
      const uint64_t hash = IndexTable::Hash(key) >> (64 - hash_bits)
                                                         << (64 - hash_bits);
      uint32_t& found =
          table.Find(hash, [&](uint32_t n) { return keys[n] == key; });
      const auto it = expected.find(key);
      ASSERT_EQ(found, it == expected.end() ? IndexTable::kNone : it->second);
      if (it != expected.end() || keys.size() == 500) continue;
      found = expected[key] = static_cast<uint32_t>(keys.size());
      keys.push_back(key);
    }
    EXPECT_EQ(keys.size(), 500u) << "full";
    table.Reset(1);
    EXPECT_EQ(
        table.Find(IndexTable::Hash(keys[0]), [](uint32_t) { return true; }),
        IndexTable::kNone);
  }
}

TEST(IndexTableTest, MemoryIsKnownBeforehand) {
  EXPECT_LE(IndexTable::BytesFor(3000), 3000 * 6u);
  EXPECT_GE(IndexTable::BytesFor(0), sizeof(uint32_t));
}

}  // namespace
}  // namespace baton::decode
