#include "common/kv_cache/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace baton {
namespace {

using ::testing::HasSubstr;

constexpr WorkerEpoch kEpoch(77);
constexpr BlockUse kAllUses[] = {BlockUse::kQuarantine, BlockUse::kLanding,
                                 BlockUse::kSending, BlockUse::kRunning,
                                 BlockUse::kPrefix};

std::vector<uint32_t> Ids(const std::vector<BlockRef>& refs) {
  std::vector<uint32_t> ids;
  for (const BlockRef& ref : refs) ids.push_back(ref.id.value());
  return ids;
}

TEST(BlockPoolTest, StartsFree) {
  BlockPool pool(kEpoch, 5);
  EXPECT_EQ(pool.ledger().free, 5u);
  EXPECT_EQ(pool.ledger().total(), 5u);
  EXPECT_EQ(pool.ledger().ToString(),
            "quarantine=0 landing=0 sending=0 running=0 prefix=0 free=5");
  EXPECT_TRUE(pool.Audit().ok());
}

TEST(BlockPoolTest, AcquireGivesTheLowestIdsAllOrNothing) {
  BlockPool pool(kEpoch, 4);
  auto a = pool.Acquire(3, BlockUse::kRunning);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(Ids(*a), (std::vector<uint32_t>{0, 1, 2}));
  auto b = pool.Acquire(2, BlockUse::kRunning);
  EXPECT_EQ(b.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(b.status().message(), "KV blocks: wanted 2, free 1 of 4");
  EXPECT_EQ(pool.ledger().free, 1u);
  ASSERT_TRUE(pool.Release({(*a)[1]}, BlockUse::kRunning).ok());
  auto c = pool.Acquire(2, BlockUse::kLanding);
  ASSERT_TRUE(c.ok());
  EXPECT_EQ(Ids(*c), (std::vector<uint32_t>{1, 3}));
  EXPECT_TRUE(pool.Audit().ok());
}

TEST(BlockPoolTest, AcquireOfNothingIsEmpty) {
  BlockPool pool(kEpoch, 0);
  auto none = pool.Acquire(0, BlockUse::kRunning);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
}

TEST(BlockPoolTest, StateIsTheFirstUseInPrecedence) {
  BlockPool pool(kEpoch, 1);
  auto refs = *pool.Acquire(1, BlockUse::kPrefix);
  for (const BlockUse use : {BlockUse::kRunning, BlockUse::kSending,
                             BlockUse::kLanding, BlockUse::kQuarantine}) {
    ASSERT_TRUE(pool.Hold(refs, use).ok());
    EXPECT_EQ(pool.ledger()[use], 1u) << BlockUseName(use);
    EXPECT_EQ(pool.ledger().total(), 1u);
  }
  ASSERT_TRUE(pool.Release(refs, BlockUse::kQuarantine).ok());
  EXPECT_EQ(pool.ledger()[BlockUse::kLanding], 1u);
}

TEST(BlockPoolTest, FreesAtTheLastHoldAndFencesOldReferences) {
  BlockPool pool(kEpoch, 1);
  const auto first = *pool.Acquire(1, BlockUse::kRunning);
  ASSERT_TRUE(pool.Hold(first, BlockUse::kRunning).ok());
  ASSERT_TRUE(pool.Release(first, BlockUse::kRunning).ok());
  EXPECT_EQ(pool.ledger().free, 0u);
  EXPECT_EQ(pool.Holds(first[0], BlockUse::kRunning), 1u);
  ASSERT_TRUE(pool.Release(first, BlockUse::kRunning).ok());
  EXPECT_EQ(pool.ledger().free, 1u);

  const auto second = *pool.Acquire(1, BlockUse::kPrefix);
  EXPECT_EQ(second[0].id, first[0].id);
  EXPECT_NE(second[0].generation, first[0].generation);
  EXPECT_EQ(pool.Holds(first[0], BlockUse::kPrefix), 0u);
  for (const absl::Status& status :
       {pool.Check(first[0]), pool.Hold(first, BlockUse::kRunning),
        pool.Release(first, BlockUse::kPrefix),
        pool.Move(first, BlockUse::kPrefix, BlockUse::kRunning)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("stale generation"));
  }
  EXPECT_EQ(pool.ledger()[BlockUse::kPrefix], 1u);
}

TEST(BlockPoolTest, RefusesEveryKindOfWrongReference) {
  BlockPool pool(kEpoch, 2);
  const BlockRef held = pool.Acquire(1, BlockUse::kRunning)->front();
  struct Case {
    BlockRef ref;
    absl::StatusCode code;
    const char* message;
  };
  const Case cases[] = {
      {{WorkerEpoch(78), held.id, held.generation},
       absl::StatusCode::kFailedPrecondition,
       "block 0: of worker epoch 78, this is epoch 77"},
      {{kEpoch, BlockId(2), held.generation},
       absl::StatusCode::kOutOfRange,
       "block 2: the pool has 2"},
      {{kEpoch, BlockId(0xffffffff), held.generation},
       absl::StatusCode::kOutOfRange,
       "block 4294967295: the pool has 2"},
      {{kEpoch, held.id, Generation(0)},
       absl::StatusCode::kFailedPrecondition,
       "block 0: stale generation 0, now 1"},
      {{kEpoch, held.id, Generation(2)},
       absl::StatusCode::kFailedPrecondition,
       "block 0: stale generation 2, now 1"},
      {{kEpoch, BlockId(1), Generation(1)},
       absl::StatusCode::kFailedPrecondition,
       "block 1: is free"},
      {BlockRef{}, absl::StatusCode::kFailedPrecondition,
       "block 0: of worker epoch 0, this is epoch 77"},
  };
  const Ledger before = pool.ledger();
  for (const Case& c : cases) {
    for (const absl::Status& status :
         {pool.Check(c.ref), pool.Hold({c.ref}, BlockUse::kPrefix),
          pool.Release({c.ref}, BlockUse::kRunning),
          pool.Move({c.ref}, BlockUse::kRunning, BlockUse::kPrefix),
          pool.Hold({held, c.ref}, BlockUse::kPrefix),
          pool.Release({held, c.ref}, BlockUse::kRunning)}) {
      EXPECT_EQ(status.code(), c.code);
      EXPECT_EQ(status.message(), c.message);
    }
    EXPECT_EQ(pool.ledger(), before);
    ASSERT_TRUE(pool.Audit().ok());
  }
  EXPECT_EQ(pool.Holds(held, BlockUse::kRunning), 1u);
  EXPECT_EQ(pool.Holds(held, BlockUse::kPrefix), 0u);
}

TEST(BlockPoolTest, ReleaseForAnotherUseIsRefused) {
  BlockPool pool(kEpoch, 1);
  const auto refs = *pool.Acquire(1, BlockUse::kLanding);
  const absl::Status status = pool.Release(refs, BlockUse::kSending);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "block 0: not held for sending");
}

TEST(BlockPoolTest, TheSameBlockTwiceNeedsTwoHolds) {
  BlockPool pool(kEpoch, 1);
  const BlockRef ref = pool.Acquire(1, BlockUse::kRunning)->front();
  EXPECT_EQ(pool.Release({ref, ref}, BlockUse::kRunning).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(pool.Holds(ref, BlockUse::kRunning), 1u);
  ASSERT_TRUE(pool.Hold({ref}, BlockUse::kRunning).ok());
  ASSERT_TRUE(pool.Release({ref, ref}, BlockUse::kRunning).ok());
  EXPECT_EQ(pool.ledger().free, 1u);
  EXPECT_TRUE(pool.Audit().ok());
}

TEST(BlockPoolTest, MoveKeepsTheGeneration) {
  BlockPool pool(kEpoch, 2);
  const auto refs = *pool.Acquire(2, BlockUse::kLanding);
  ASSERT_TRUE(pool.Move(refs, BlockUse::kLanding, BlockUse::kQuarantine).ok());
  EXPECT_EQ(pool.ledger()[BlockUse::kQuarantine], 2u);
  EXPECT_TRUE(pool.Check(refs[0]).ok());
  EXPECT_TRUE(
      pool.Move(refs, BlockUse::kQuarantine, BlockUse::kQuarantine).ok());
  EXPECT_TRUE(pool.Audit().ok());
}

TEST(BlockPoolTest, HoldCountIsBounded) {
  BlockPool pool(kEpoch, 1);
  const auto refs = *pool.Acquire(1, BlockUse::kPrefix);
  for (int i = 1; i < 65535; ++i) {
    ASSERT_TRUE(pool.Hold(refs, BlockUse::kPrefix).ok());
  }
  EXPECT_EQ(pool.Hold(refs, BlockUse::kPrefix).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(pool.Move(refs, BlockUse::kPrefix, BlockUse::kPrefix).ok());
  EXPECT_EQ(pool.Holds(refs[0], BlockUse::kPrefix), 65535u);
}

// The same pool in the most obvious form.
class NaiveModel {
 public:
  explicit NaiveModel(uint32_t blocks) : generation_(blocks, 1) {
    for (uint32_t id = 0; id < blocks; ++id) free_.insert(id);
  }

  std::optional<std::vector<BlockRef>> Acquire(uint32_t count, BlockUse use) {
    if (count > free_.size()) return std::nullopt;
    std::vector<BlockRef> refs;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t id = *free_.begin();
      free_.erase(free_.begin());
      holds_[id].insert(use);
      refs.push_back({kEpoch, BlockId(id), Generation(generation_[id])});
    }
    return refs;
  }

  bool Change(const std::vector<BlockRef>& refs, std::optional<BlockUse> from,
              std::optional<BlockUse> to) {
    auto holds = holds_;
    for (const BlockRef& ref : refs) {
      const uint32_t id = ref.id.value();
      if (ref.epoch != kEpoch || id >= generation_.size() ||
          ref.generation.value() != generation_[id] || free_.contains(id)) {
        return false;
      }
      if (from) {
        auto held = holds[id].find(*from);
        if (held == holds[id].end()) return false;
        holds[id].erase(held);
      }
      if (to) holds[id].insert(*to);
    }
    holds_ = std::move(holds);
    for (const BlockRef& ref : refs) {
      const uint32_t id = ref.id.value();
      if (holds_[id].empty() && free_.insert(id).second) ++generation_[id];
    }
    return true;
  }

  Ledger Count() const {
    Ledger ledger;
    ledger.free = static_cast<uint32_t>(free_.size());
    for (const auto& [id, uses] : holds_) {
      if (!uses.empty()) ++ledger.used[static_cast<size_t>(*uses.begin())];
    }
    return ledger;
  }

 private:
  std::vector<uint32_t> generation_;
  std::set<uint32_t> free_;
  std::map<uint32_t, std::multiset<BlockUse>> holds_;
};

class BlockPoolPropertyTest : public ::testing::TestWithParam<int> {};

TEST_P(BlockPoolPropertyTest, AgreesWithTheNaiveModel) {
  std::mt19937 random(GetParam());
  const auto below = [&](uint32_t n) { return random() % n; };
  const uint32_t blocks = 1 + below(24);
  BlockPool pool(kEpoch, blocks);
  NaiveModel model(blocks);
  std::vector<BlockRef> seen = {
      {WorkerEpoch(1), BlockId(0), Generation(1)},
      {kEpoch, BlockId(blocks), Generation(1)},
  };
  for (int step = 0; step < 3000; ++step) {
    const BlockUse a = kAllUses[below(kBlockUses)];
    const BlockUse b = kAllUses[below(kBlockUses)];
    std::vector<BlockRef> some;
    for (uint32_t n = below(4); n > 0; --n) {
      const uint32_t recent = std::min<uint32_t>(seen.size(), 2 * blocks);
      some.push_back(below(20) == 0 ? seen[below(seen.size())]
                                    : seen[seen.size() - 1 - below(recent)]);
    }
    switch (below(4)) {
      case 0: {
        const uint32_t count = below(5);
        auto got = pool.Acquire(count, a);
        auto expected = model.Acquire(count, a);
        ASSERT_EQ(got.ok(), expected.has_value());
        if (got.ok()) {
          ASSERT_EQ(*got, *expected);
          seen.insert(seen.end(), got->begin(), got->end());
        }
        break;
      }
      case 1:
        ASSERT_EQ(pool.Hold(some, a).ok(), model.Change(some, std::nullopt, a));
        break;
      case 2:
        ASSERT_EQ(pool.Release(some, a).ok(),
                  model.Change(some, a, std::nullopt));
        break;
      case 3:
        ASSERT_EQ(pool.Move(some, a, b).ok(), model.Change(some, a, b));
        break;
    }
    ASSERT_EQ(pool.ledger(), model.Count()) << "step " << step;
    ASSERT_EQ(pool.ledger().total(), blocks);
    const absl::Status audit = pool.Audit();
    ASSERT_TRUE(audit.ok()) << audit;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, BlockPoolPropertyTest, ::testing::Range(0, 30));

}  // namespace
}  // namespace baton
