#ifndef BATON_TESTS_UNIT_COMMON_KV_CACHE_PREFIX_CACHE_MODEL_H_
#define BATON_TESTS_UNIT_COMMON_KV_CACHE_PREFIX_CACHE_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/kv_cache/prefix_cache.h"
#include "common/tokens/prefix_hash.h"

namespace baton {

// A PrefixCache, and beside it the plainest one there is: prefixes by what they
// say, with the time of their last use. Steps draw from `below(n)`, in [0, n);
// every answer and what the pool holds must be the same.
class PrefixCacheModel {
 public:
  using Below = std::function<uint32_t(uint32_t)>;

  PrefixCacheModel(uint32_t blocks, Below below)
      : below_(std::move(below)), pool_(WorkerEpoch(5), blocks) {}

  void Step() {
    switch (below_(10)) {
      case 0:
      case 1:
      case 2:
        return Insert();
      case 3:
      case 4:
        return Find();
      case 5:
        return Hold();
      case 6:
        return LetGo();
      case 7:
        if (below_(8) == 0) return Clear();
        return MakeRoom(below_(pool_.size() + 2));
      default:
        return MakeRoom(1 + below_(3));
    }
  }

  void Check() {
    BATON_CHECK(pool_.Audit().ok());
    BATON_CHECK(cache_.size() == kept_.size());
    uint32_t cached = 0;
    for (const auto& [prefix, kept] : kept_) {
      BATON_CHECK(pool_.Holds(kept.block, BlockUse::kPrefix) == 1);
      cached += HeldForMore(kept.block) ? 0 : 1;
    }
    BATON_CHECK(pool_.ledger()[BlockUse::kPrefix] == cached);
    BATON_CHECK(cache_.evicted() == evicted_);
  }

  // Everything comes back.
  void Finish() {
    while (!held_.empty()) LetGo();
    for (const auto& [prefix, kept] : kept_) Look(prefix);
    MakeRoom(pool_.size());
    BATON_CHECK(cache_.size() == 0);
    BATON_CHECK(pool_.ledger().free == pool_.size());
  }

 private:
  using Prefix = std::vector<TokenId>;  // what each of its blocks is full of
  struct Kept {
    BlockRef block;
    uint64_t used = 0;
  };

  static std::vector<PrefixHash> HashesOf(const Prefix& prefix) {
    std::vector<TokenId> tokens;
    for (const TokenId token : prefix) {
      tokens.insert(tokens.end(), kBlockTokens, token);
    }
    return HashPrefixes(PrefixSeed("salt", "fingerprint"), tokens);
  }
  static Prefix Front(const Prefix& prefix, size_t blocks) {
    return {prefix.begin(), prefix.begin() + static_cast<long>(blocks)};
  }

  Prefix AnyPrefix() {
    Prefix prefix(1 + below_(5));
    for (TokenId& token : prefix) token = below_(3);
    return prefix;
  }
  bool HeldForMore(const BlockRef& block) const {
    return pool_.Holds(block, BlockUse::kSending) > 0 ||
           pool_.Holds(block, BlockUse::kRunning) > 0;
  }
  void Used(const Prefix& prefix) {
    for (size_t blocks = prefix.size(); blocks > 0; --blocks) {
      kept_.at(Front(prefix, blocks)).used = ++clock_;
    }
  }

  void Insert() {
    const Prefix prefix = AnyPrefix();
    auto blocks =
        pool_.Acquire(static_cast<uint32_t>(prefix.size()), BlockUse::kRunning);
    if (!blocks.ok()) return MakeRoom(static_cast<uint32_t>(prefix.size()));
    for (size_t i = 0; i < prefix.size(); ++i) {
      kept_.try_emplace(Front(prefix, i + 1), Kept{(*blocks)[i]});
    }
    Used(prefix);
    cache_.Insert(HashesOf(prefix), *blocks, pool_);
    BATON_CHECK(pool_.Release(*blocks, BlockUse::kRunning).ok());
  }

  std::vector<BlockRef> Look(const Prefix& prefix) {
    std::vector<BlockRef> expected;
    if (kept_.contains(prefix)) {
      for (size_t blocks = 1; blocks <= prefix.size(); ++blocks) {
        expected.push_back(kept_.at(Front(prefix, blocks)).block);
      }
      Used(prefix);
    }
    const auto count = static_cast<uint32_t>(prefix.size());
    BATON_CHECK(cache_.Find(HashesOf(prefix).back(), count) == expected);
    return expected;
  }

  void Find() {
    const Prefix prefix = AnyPrefix();
    const auto other = static_cast<uint32_t>(prefix.size()) + 1 + below_(2);
    BATON_CHECK(cache_.Find(HashesOf(prefix).back(), other).empty());
    Look(prefix);
  }

  void Hold() {
    const BlockUse use =
        below_(2) == 0 ? BlockUse::kSending : BlockUse::kRunning;
    std::vector<BlockRef> blocks = Look(AnyPrefix());
    if (blocks.empty()) {
      auto own = pool_.Acquire(below_(3), use);
      if (!own.ok()) return;
      blocks = *std::move(own);
    } else {
      BATON_CHECK(pool_.Hold(blocks, use).ok());
    }
    held_.emplace_back(std::move(blocks), use);
  }
  void LetGo() {
    if (held_.empty()) return;
    const size_t which = below_(static_cast<uint32_t>(held_.size()));
    std::swap(held_[which], held_.back());
    BATON_CHECK(pool_.Release(held_.back().first, held_.back().second).ok());
    held_.pop_back();
  }

  void MakeRoom(uint32_t free) {
    std::vector<BlockRef> dropped;
    const auto idle = std::count_if(
        kept_.begin(), kept_.end(),
        [&](const auto& kept) { return !HeldForMore(kept.second.block); });
    const bool enough = pool_.ledger().free + idle >= free;
    while (enough && pool_.ledger().free + dropped.size() < free) {
      auto oldest = kept_.end();
      for (auto it = kept_.begin(); it != kept_.end(); ++it) {
        const auto next = std::next(it);  // its first child, if it has any
        const bool parent = next != kept_.end() &&
                            next->first.size() > it->first.size() &&
                            Front(next->first, it->first.size()) == it->first;
        if (parent || HeldForMore(it->second.block)) continue;
        if (oldest == kept_.end() || it->second.used < oldest->second.used) {
          oldest = it;
        }
      }
      if (oldest == kept_.end()) break;
      dropped.push_back(oldest->second.block);
      kept_.erase(oldest);
      ++evicted_;
    }
    cache_.MakeRoom(free, pool_);
    for (const BlockRef& block : dropped) {
      BATON_CHECK(!pool_.Check(block).ok());
    }
  }
  void Clear() {
    kept_.clear();
    cache_.Clear(pool_);
  }

  Below below_;
  BlockPool pool_;
  PrefixCache cache_;
  std::map<Prefix, Kept> kept_;
  std::vector<std::pair<std::vector<BlockRef>, BlockUse>> held_;
  uint64_t clock_ = 0;
  uint64_t evicted_ = 0;
};

}  // namespace baton

#endif  // BATON_TESTS_UNIT_COMMON_KV_CACHE_PREFIX_CACHE_MODEL_H_
