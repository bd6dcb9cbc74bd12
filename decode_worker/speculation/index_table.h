#ifndef BATON_DECODE_WORKER_SPECULATION_INDEX_TABLE_H_
#define BATON_DECODE_WORKER_SPECULATION_INDEX_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::decode {

// Finds things that lie elsewhere by a hash of their key: open addressing over
// their numbers, in memory known beforehand. Nothing is ever removed.
class IndexTable {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  static size_t BytesFor(size_t entries) {
    return SlotsFor(entries) * sizeof(uint32_t);
  }

  // Empties it and makes room for so many.
  void Reset(size_t entries) {
    std::vector<uint32_t>().swap(slots_);  // frees, does not keep room
    slots_.assign(SlotsFor(entries), kNone);
  }

  size_t bytes() const { return slots_.capacity() * sizeof(uint32_t); }

  // Where the number is for which is(number), kNone if there is none; assign to
  // it to add one. `hash` is that of its key. Requires room.
  template <class Is>
  uint32_t& Find(uint64_t hash, Is is) {
    size_t slot = SlotOf(hash);
    while (slots_[slot] != kNone && !is(slots_[slot])) {
      if (++slot == slots_.size()) slot = 0;
    }
    return slots_[slot];
  }
  template <class Is>
  uint32_t Find(uint64_t hash, Is is) const {
    return const_cast<IndexTable*>(this)->Find(hash, is);
  }

  // Another one wherever the program is loaded at a random address, so that
  // texts do not collide on purpose.
  static uint64_t Hash(uint64_t key) {
    static const char seed = 0;
    key ^= reinterpret_cast<uintptr_t>(&seed);
    key = (key ^ key >> 32) * 0xD6E8FEB86659FD93u;
    return (key ^ key >> 32) * 0xD6E8FEB86659FD93u;
  }

 private:
  // Three quarters full at most.
  static size_t SlotsFor(size_t entries) { return entries + entries / 3 + 1; }
  size_t SlotOf(uint64_t hash) const {
    return (hash >> 32) * slots_.size() >> 32;
  }

  std::vector<uint32_t> slots_;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_INDEX_TABLE_H_
