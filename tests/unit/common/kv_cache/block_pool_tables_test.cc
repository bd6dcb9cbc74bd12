// Sequences that keep their tokens in blocks of a pool, as a worker does it:
// they begin, share, write (and copy before they write what is shared), end,
// lose everything and come back. A model without blocks says what each must
// read and which blocks are held how often.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "common/kv_cache/block_pool.h"
#include "common/tokens/token.h"

namespace baton {
namespace {

constexpr uint32_t kNothing = 0;

class Tables {
 public:
  explicit Tables(uint32_t blocks, uint32_t seed)
      : random_(seed),
        pool_(WorkerEpoch(3), blocks),
        memory_(blocks, std::vector<uint32_t>(kBlockTokens, kNothing)) {}

  void Step() {
    switch (Draw(12)) {
      case 0:
        return Begin();
      case 1:
        return Share();
      case 2:
        return End();
      case 3:
        return Preempt();
      case 4:
        return Return();
      default:
        return Write();
    }
  }

  void Check() {
    std::map<uint32_t, uint32_t> holds;
    for (const Sequence& sequence : sequences_) {
      for (const BlockRef& block : sequence.table) ++holds[block.id.value()];
      if (sequence.preempted) {
        ASSERT_TRUE(sequence.table.empty());
        continue;
      }
      ASSERT_EQ(sequence.table.size(), BlocksFor(sequence.tokens.size()));
      for (size_t i = 0; i < sequence.tokens.size(); ++i) {
        const BlockRef& block = sequence.table[i / kBlockTokens];
        ASSERT_TRUE(pool_.Check(block).ok()) << pool_.Check(block);
        ASSERT_EQ(memory_[block.id.value()][i % kBlockTokens],
                  sequence.tokens[i])
            << "position " << i;
      }
    }
    for (uint32_t id = 0; id < pool_.size(); ++id) {
      ASSERT_EQ(pool_.Holds(pool_.Current(BlockId(id)), BlockUse::kRunning),
                holds.contains(id) ? holds.at(id) : 0)
          << "block " << id;
    }
    ASSERT_EQ(pool_.ledger()[BlockUse::kRunning], holds.size());
    ASSERT_EQ(pool_.ledger().free, pool_.size() - holds.size());
    ASSERT_TRUE(pool_.Audit().ok()) << pool_.Audit();
    for (const BlockRef& block : let_go_) {
      ASSERT_FALSE(pool_.Check(block).ok())
          << "block " << block.id.value() << " has a new owner";
    }
  }

  void EndAll() {
    while (!sequences_.empty()) End();
    Check();
    ASSERT_EQ(pool_.ledger().free, pool_.size());
  }

  uint32_t copies = 0, preemptions = 0, returns = 0, refusals = 0;

 private:
  struct Sequence {
    std::vector<uint32_t> tokens;
    std::vector<BlockRef> table;
    bool preempted = false;
  };

  uint32_t Draw(uint32_t below) { return random_() % below; }
  uint32_t NewToken() { return ++last_token_; }
  Sequence* Any(bool preempted) {
    std::vector<Sequence*> fitting;
    for (Sequence& sequence : sequences_) {
      if (sequence.preempted == preempted) fitting.push_back(&sequence);
    }
    return fitting.empty()
               ? nullptr
               : fitting[Draw(static_cast<uint32_t>(fitting.size()))];
  }

  // Blocks for all of its tokens, written.
  bool Fill(Sequence* sequence) {
    auto blocks =
        pool_.Acquire(BlocksFor(sequence->tokens.size()), BlockUse::kRunning);
    if (!blocks.ok()) {
      ++refusals;
      return false;
    }
    sequence->table = *blocks;
    for (const BlockRef& block : *blocks) Clear(block);
    for (size_t i = 0; i < sequence->tokens.size(); ++i) {
      memory_[sequence->table[i / kBlockTokens].id.value()][i % kBlockTokens] =
          sequence->tokens[i];
    }
    return true;
  }
  void Clear(const BlockRef& block) {
    memory_[block.id.value()].assign(kBlockTokens, kNothing);
  }
  void Release(Sequence* sequence) {
    ASSERT_TRUE(pool_.Release(sequence->table, BlockUse::kRunning).ok());
    for (const BlockRef& block : sequence->table) {
      if (!pool_.Check(block).ok()) let_go_.push_back(block);
    }
    sequence->table.clear();
  }

  void Begin() {
    Sequence sequence;
    for (uint32_t i = 1 + Draw(60); i > 0; --i) {
      sequence.tokens.push_back(NewToken());
    }
    if (Fill(&sequence)) sequences_.push_back(std::move(sequence));
  }
  void Share() {
    Sequence* from = Any(/*preempted=*/false);
    if (from == nullptr) return;
    ASSERT_TRUE(pool_.Hold(from->table, BlockUse::kRunning).ok());
    sequences_.push_back(Sequence(*from));
  }
  void Write() {
    Sequence* sequence = Any(/*preempted=*/false);
    if (sequence == nullptr) return;
    const size_t position = sequence->tokens.size();
    const bool begins = position % kBlockTokens == 0;
    const bool shared =
        !begins && pool_.Holds(sequence->table.back(), BlockUse::kRunning) > 1;
    if (begins || shared) {
      auto block = pool_.Acquire(1, BlockUse::kRunning);
      if (!block.ok()) {
        ++refusals;
        return;
      }
      Clear(block->front());
      if (shared) {
        ++copies;
        BlockRef& last = sequence->table.back();
        memory_[block->front().id.value()] = memory_[last.id.value()];
        ASSERT_TRUE(pool_.Release({&last, 1}, BlockUse::kRunning).ok());
        last = block->front();
      } else {
        sequence->table.push_back(block->front());
      }
    }
    sequence->tokens.push_back(NewToken());
    memory_[sequence->table.back().id.value()][position % kBlockTokens] =
        sequence->tokens.back();
  }
  void End() {
    if (sequences_.empty()) return;
    const auto which =
        sequences_.begin() + Draw(static_cast<uint32_t>(sequences_.size()));
    Release(&*which);
    sequences_.erase(which);
  }
  void Preempt() {
    Sequence* sequence = Any(/*preempted=*/false);
    if (sequence == nullptr) return;
    Release(sequence);
    sequence->preempted = true;
    ++preemptions;
  }
  void Return() {
    Sequence* sequence = Any(/*preempted=*/true);
    if (sequence == nullptr || !Fill(sequence)) return;
    sequence->preempted = false;
    ++returns;
  }

  std::mt19937 random_;
  BlockPool pool_;
  std::vector<std::vector<uint32_t>> memory_;  // by block and lane
  std::vector<Sequence> sequences_;
  std::vector<BlockRef> let_go_;  // references that became stale
  uint32_t last_token_ = 0;
};

TEST(BlockPoolTables, EverySequenceReadsWhatItWrote) {
  uint32_t copies = 0, preemptions = 0, returns = 0, refusals = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Tables tables(4 + seed, seed);
    for (int step = 0; step < 500; ++step) {
      tables.Step();
      tables.Check();
      if (testing::Test::HasFatalFailure()) return;
    }
    tables.EndAll();
    copies += tables.copies;
    preemptions += tables.preemptions;
    returns += tables.returns;
    refusals += tables.refusals;
  }
  EXPECT_GT(copies, 500u);
  EXPECT_GT(preemptions, 500u);
  EXPECT_GT(returns, 200u);
  EXPECT_GT(refusals, 1000u);
}

}  // namespace
}  // namespace baton
