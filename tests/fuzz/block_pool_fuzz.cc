// Any sequence of pool operations against a model that keeps every hold in a
// map: same answers, same states, and the ledger balances after each.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/check.h"
#include "common/kv_cache/block_pool.h"
#include "tests/fuzz/fuzz_input.h"

namespace baton {
namespace {

using fuzz::FuzzInput;

constexpr WorkerEpoch kEpoch{7};

class PoolModel {
 public:
  explicit PoolModel(uint32_t blocks) : blocks_(blocks) {}

  struct Block {
    std::array<uint32_t, kBlockUses> holds{};
    uint32_t freed = 0;  // how often
    bool free() const {
      return std::count(holds.begin(), holds.end(), 0u) == kBlockUses;
    }
  };
  // What a reference means here; absent when the pool never gave it out.
  struct Name {
    uint32_t id;
    uint32_t freed;
  };

  std::optional<std::vector<uint32_t>> Acquire(uint32_t count, BlockUse use) {
    std::vector<uint32_t> ids;
    for (uint32_t id = 0; id < blocks_.size() && ids.size() < count; ++id) {
      if (blocks_[id].free()) ids.push_back(id);
    }
    if (ids.size() < count) return std::nullopt;
    for (const uint32_t id : ids) ++Holds(id, use);
    return ids;
  }
  // One operation on a list of blocks, all or nothing.
  bool Change(const std::vector<Name>& names, std::optional<BlockUse> from,
              std::optional<BlockUse> to) {
    const std::vector<Block> before = blocks_;
    for (const Name& name : names) {
      const bool ok = !Stale(name) && (!from || Holds(name.id, *from) > 0) &&
                      (!to || Holds(name.id, *to) < 65535 || from == to);
      if (!ok) {
        blocks_ = before;
        return false;
      }
      if (from) --Holds(name.id, *from);
      if (to) ++Holds(name.id, *to);
    }
    for (size_t id = 0; id < blocks_.size(); ++id) {
      if (blocks_[id].free() && !before[id].free()) ++blocks_[id].freed;
    }
    return true;
  }
  bool Stale(const Name& name) const {
    return name.id >= blocks_.size() || blocks_[name.id].freed != name.freed ||
           blocks_[name.id].free();
  }
  uint32_t& Holds(uint32_t id, BlockUse use) {
    return blocks_[id].holds[static_cast<size_t>(use)];
  }
  const std::vector<Block>& blocks() const { return blocks_; }

  Ledger Count() const {
    Ledger ledger;
    for (const Block& block : blocks_) {
      size_t state = 0;
      while (state < kBlockUses && block.holds[state] == 0) ++state;
      ++(state == kBlockUses ? ledger.free : ledger.used[state]);
    }
    return ledger;
  }

 private:
  std::vector<Block> blocks_;
};

class PoolFuzzer {
 public:
  explicit PoolFuzzer(FuzzInput input)
      : input_(input),
        size_(1 + input_.Below(24)),
        pool_(kEpoch, size_),
        model_(size_) {}

  void Run() {
    while (!input_.empty()) {
      Step();
      Check();
    }
    ReleaseAll();
    BATON_CHECK(pool_.ledger().free == size_);
    BATON_CHECK(pool_.Audit().ok());
  }

 private:
  BlockUse AnyUse() { return static_cast<BlockUse>(input_.Below(kBlockUses)); }

  // Known references, now and then one that the pool never gave out.
  void AnyBlocks(std::vector<BlockRef>* refs,
                 std::vector<PoolModel::Name>* names) {
    for (uint32_t count = input_.Below(5); count > 0; --count) {
      const uint32_t which = input_.Byte();
      if (which < 250 && !known_.empty()) {
        const auto& [ref, name] = known_[which % known_.size()];
        refs->push_back(ref);
        names->push_back(name);
      } else {
        BlockRef ref{WorkerEpoch(kEpoch.value() + (which & 1)),
                     BlockId(input_.Number<uint32_t>()),
                     Generation(input_.Number<uint32_t>())};
        const bool current =
            ref.id.value() < size_ && pool_.Current(ref.id) == ref;
        refs->push_back(ref);
        names->push_back({current ? ref.id.value() : size_,
                          current ? model_.blocks()[ref.id.value()].freed : 0});
      }
    }
  }

  void Step() {
    const uint32_t kind = input_.Below(8);
    if (kind < 2) return Acquire();
    std::vector<BlockRef> refs;
    std::vector<PoolModel::Name> names;
    AnyBlocks(&refs, &names);
    const BlockUse use = AnyUse();
    if (kind < 4) {
      Same(pool_.Hold(refs, use), model_.Change(names, std::nullopt, use));
    } else if (kind < 6) {
      Same(pool_.Release(refs, use), model_.Change(names, use, std::nullopt));
    } else {
      const BlockUse to = AnyUse();
      Same(pool_.Move(refs, use, to), model_.Change(names, use, to));
    }
    for (size_t i = 0; i < refs.size(); ++i) {
      BATON_CHECK(pool_.Check(refs[i]).ok() != model_.Stale(names[i]));
    }
  }

  void Acquire() {
    const uint32_t count = input_.Below(size_ + 3);
    const BlockUse use = AnyUse();
    const auto got = pool_.Acquire(count, use);
    const auto expected = model_.Acquire(count, use);
    BATON_CHECK(got.ok() == expected.has_value());
    if (!got.ok()) {
      BATON_CHECK(absl::IsResourceExhausted(got.status()));
      return;
    }
    BATON_CHECK(got->size() == expected->size());
    for (size_t i = 0; i < got->size(); ++i) {
      const uint32_t id = (*expected)[i];
      BATON_CHECK((*got)[i].id == BlockId(id));
      known_.push_back({(*got)[i], {id, model_.blocks()[id].freed}});
    }
    if (known_.size() > 200) known_.erase(known_.begin(), known_.end() - 200);
  }

  static void Same(const absl::Status& status, bool expected) {
    BATON_CHECK(status.ok() == expected);
    BATON_CHECK(status.ok() || !status.message().empty());
  }

  void Check() {
    const Ledger counted = model_.Count();
    BATON_CHECK(pool_.ledger() == counted);
    BATON_CHECK(counted.total() == size_);
    BATON_CHECK(pool_.Audit().ok());
    for (uint32_t id = 0; id < size_; ++id) {
      const BlockRef current = pool_.Current(BlockId(id));
      BATON_CHECK(pool_.Check(current).ok() == !model_.blocks()[id].free());
      for (int use = 0; use < kBlockUses; ++use) {
        BATON_CHECK(pool_.Holds(current, static_cast<BlockUse>(use)) ==
                    model_.blocks()[id].holds[use]);
      }
    }
    for (const auto& [ref, name] : known_) {
      BATON_CHECK(pool_.Check(ref).ok() != model_.Stale(name));
    }
  }

  void ReleaseAll() {
    for (uint32_t id = 0; id < size_; ++id) {
      for (int use = 0; use < kBlockUses; ++use) {
        const auto which = static_cast<BlockUse>(use);
        const BlockRef ref = pool_.Current(BlockId(id));
        for (uint32_t n = pool_.Holds(ref, which); n > 0; --n) {
          BATON_CHECK(pool_.Release({&ref, 1}, which).ok());
        }
      }
    }
  }

  FuzzInput input_;
  const uint32_t size_;
  BlockPool pool_;
  PoolModel model_;
  std::vector<std::pair<BlockRef, PoolModel::Name>> known_;
};

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= 4096) {
    baton::PoolFuzzer(baton::fuzz::FuzzInput(data, size)).Run();
  }
  return 0;
}
