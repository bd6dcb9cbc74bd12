#include "common/tokenizer/byte_pair_merger.h"

#include <queue>

namespace baton {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};

// Symbols are a doubly linked list over their original places.
struct Symbol {
  TokenId token;
  uint32_t previous;
  uint32_t next;
};

// What a pair was when it was queued: stale once either side has changed.
struct Pair {
  uint32_t rank;
  uint32_t place;  // of the left symbol
  TokenId left;
  TokenId right;
  TokenId merged;

  friend bool operator>(const Pair& a, const Pair& b) {
    return a.rank > b.rank || (a.rank == b.rank && a.place > b.place);
  }
};

uint64_t Key(TokenId left, TokenId right) {
  return uint64_t{left} << 32 | right;
}

}  // namespace

void BytePairMerger::AddMerge(TokenId left, TokenId right, uint32_t rank,
                              TokenId merged) {
  merges_.try_emplace(Key(left, right), Merge{rank, merged});
}

const BytePairMerger::Merge* BytePairMerger::Find(TokenId left,
                                                  TokenId right) const {
  const auto it = merges_.find(Key(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

void BytePairMerger::Encode(std::string_view word,
                            std::vector<TokenId>* tokens) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (const char byte : word) {
    const auto token = byte_tokens_[static_cast<uint8_t>(byte)];
    if (!token.has_value()) continue;
    const uint32_t place = static_cast<uint32_t>(symbols.size());
    symbols.push_back({*token, place == 0 ? kNone : place - 1, place + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = kNone;

  std::priority_queue<Pair, std::vector<Pair>, std::greater<>> queue;
  const auto enqueue = [&](uint32_t place) {
    if (place == kNone || symbols[place].next == kNone) return;
    const TokenId left = symbols[place].token;
    const TokenId right = symbols[symbols[place].next].token;
    if (const Merge* merge = Find(left, right)) {
      queue.push({merge->rank, place, left, right, merge->token});
    }
  };
  for (uint32_t place = 0; place < symbols.size(); ++place) enqueue(place);

  // A merged-away symbol keeps no token, so pairs that name it are stale.
  constexpr TokenId kMergedAway = ~TokenId{0};
  while (!queue.empty()) {
    const Pair pair = queue.top();
    queue.pop();
    Symbol& left = symbols[pair.place];
    if (left.token != pair.left || left.next == kNone) continue;
    Symbol& right = symbols[left.next];
    if (right.token != pair.right) continue;
    left.token = pair.merged;
    right.token = kMergedAway;
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = pair.place;
    enqueue(left.previous);
    enqueue(pair.place);
  }
  for (uint32_t place = 0; place != kNone; place = symbols[place].next) {
    tokens->push_back(symbols[place].token);
  }
}

}  // namespace baton
