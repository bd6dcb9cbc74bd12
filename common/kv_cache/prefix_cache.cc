#include "common/kv_cache/prefix_cache.h"

#include <algorithm>
#include <iterator>

#include "common/base/check.h"
#include "common/base/mutants.h"

namespace baton {
namespace {

bool HeldForMore(const BlockRef& block, const BlockPool& pool) {
  for (int use = 0; use < kBlockUses; ++use) {
    const auto which = static_cast<BlockUse>(use);
    if (pool.Holds(block, which) > (which == BlockUse::kPrefix ? 1u : 0u)) {
      return true;
    }
  }
  return false;
}

}  // namespace

void PrefixCache::Insert(absl::Span<const PrefixHash> hashes,
                         absl::Span<const BlockRef> blocks, BlockPool& pool) {
  BATON_CHECK(hashes.size() == blocks.size());
  Place parent;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const auto [it, added] = entries_.try_emplace(hashes[i]);
    if (added) {
      BATON_CHECK(pool.Hold({&blocks[i], 1}, BlockUse::kPrefix).ok());
      order_.push_front({.hash = hashes[i],
                         .block = blocks[i],
                         .depth = static_cast<uint32_t>(i + 1),
                         .parent = parent});
      it->second = order_.begin();
      if (i > 0) ++parent->children;
    }
    parent = it->second;
    BATON_CHECK(parent->depth == i + 1);
  }
  if (!hashes.empty()) Use(parent);
}

std::vector<BlockRef> PrefixCache::Find(const PrefixHash& last,
                                        uint32_t count) {
  const auto it = entries_.find(last);
  if (it == entries_.end() || it->second->depth != count) return {};
  Place found = it->second;
  if (BATON_MUTANT("another_prefix_found")) {
    found = std::find_if(order_.begin(), found, [&](const Entry& other) {
      return other.depth == count;
    });
  }
  std::vector<BlockRef> blocks(count);
  Place entry = found;
  for (uint32_t depth = count; depth > 0; --depth) {
    blocks[depth - 1] = entry->block;
    entry = entry->parent;
  }
  Use(found);
  return blocks;
}

void PrefixCache::MakeRoom(uint32_t free, BlockPool& pool) {
  const Ledger& ledger = pool.ledger();
  if (ledger.free + ledger[BlockUse::kPrefix] < free) return;
  for (Place it = order_.end(); it != order_.begin() && ledger.free < free;) {
    --it;
    if (it->children > 0 || HeldForMore(it->block, pool)) continue;
    it = Drop(it, pool);
    ++evicted_;
  }
}

void PrefixCache::Clear(BlockPool& pool) {
  while (!order_.empty()) Drop(std::prev(order_.end()), pool);
}

void PrefixCache::Use(Place entry) {
  for (uint32_t depth = entry->depth; depth > 0; --depth) {
    order_.splice(order_.begin(), order_, entry);
    entry = entry->parent;
  }
}

PrefixCache::Place PrefixCache::Drop(Place entry, BlockPool& pool) {
  BATON_CHECK(pool.Release({&entry->block, 1}, BlockUse::kPrefix).ok());
  if (entry->depth > 1) --entry->parent->children;
  entries_.erase(entry->hash);
  return order_.erase(entry);
}

}  // namespace baton
