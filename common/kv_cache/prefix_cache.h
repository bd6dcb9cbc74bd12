#ifndef BATON_COMMON_KV_CACHE_PREFIX_CACHE_H_
#define BATON_COMMON_KV_CACHE_PREFIX_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/kv_cache/block_pool.h"
#include "common/tokens/prefix_hash.h"

namespace baton {

// Whole blocks that are kept for whoever needs the same prefix again, by the
// hash of the prefix that ends with them. A tree: the parent of a block is the
// one before it in its prefixes, and is kept at least as long as its children.
// Each entry is one kPrefix hold in the pool, so there are never more entries
// than blocks; what is not used for longest goes first, when room is wanted.
//
// Pure: single-threaded, no clock, no memory. All calls of one object get the
// same pool. Costs are O(blocks named) but where it says otherwise.
class PrefixCache {
 public:
  PrefixCache() = default;
  PrefixCache(PrefixCache&&) = default;
  PrefixCache& operator=(PrefixCache&&) = default;

  // Keeps a prefix of whole blocks from its first one on: blocks[i], which the
  // caller holds and nobody will write again, under hashes[i] (HashPrefixes).
  // What is kept already keeps the block it has, and that one gets no further
  // hold. Requires as many blocks as hashes, a block under one hash only.
  void Insert(absl::Span<const PrefixHash> hashes,
              absl::Span<const BlockRef> blocks, BlockPool& pool);

  // The blocks of the prefix that ends with `last`, first one first, if it is
  // kept and has `count` blocks; otherwise none. They stay as long as the
  // caller holds them or calls nothing that drops entries. Counts as a use.
  std::vector<BlockRef> Find(const PrefixHash& last, uint32_t count);

  // Drops entries, those not used for longest first, until `free` blocks of
  // the pool are free or no further entry could free its block: one that is
  // held for something else too stays, and with it its parents. Drops none if
  // all that nobody else holds would not be enough. A prefix goes block by
  // block from its end: whoever asks for all of it finds none from then on, and
  // what is left stays for prefixes that begin alike. O(size).
  void MakeRoom(uint32_t free, BlockPool& pool);

  void Clear(BlockPool& pool);

  size_t size() const { return entries_.size(); }
  // Entries that MakeRoom dropped so far.
  uint64_t evicted() const { return evicted_; }

 private:
  struct Entry {
    PrefixHash hash;
    BlockRef block;
    uint32_t depth = 0;  // blocks of the prefix
    uint32_t children = 0;
    std::list<Entry>::iterator parent;  // if depth > 1
  };
  using Place = std::list<Entry>::iterator;

  // With its parents, which come before it.
  void Use(Place entry);
  Place Drop(Place entry, BlockPool& pool);  // one without children

  // Latest use first, parents before their children.
  std::list<Entry> order_;
  absl::flat_hash_map<PrefixHash, Place> entries_;
  uint64_t evicted_ = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_KV_CACHE_PREFIX_CACHE_H_
