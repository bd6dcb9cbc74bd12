#ifndef BATON_DECODE_WORKER_SPECULATION_SUFFIX_DRAFTER_H_
#define BATON_DECODE_WORKER_SPECULATION_SUFFIX_DRAFTER_H_

#include <cstdint>
#include <vector>

#include "decode_worker/speculation/drafter.h"
#include "decode_worker/speculation/index_table.h"

namespace baton::decode {

// The per-request part of SuffixDecoding (Oliaro et al. 2024): an index of all
// substrings of prompt and answer, with how often each occurred. From the
// longest suffix that occurred before it follows the most frequent
// continuations. The index is a suffix automaton (Blumer et al. 1985), built
// online in O(1) amortised per token: at most two states and three edges each.
class SuffixDrafter final : public Drafter {
 public:
  // Of a text that begins with a prompt of so many tokens.
  explicit SuffixDrafter(size_t prompt);

  size_t BytesFor(size_t tokens) const override;
  void Reserve(size_t tokens) override;
  void Append(TokenId token) override;
  void Propose(size_t most, std::vector<DraftToken>* draft) const override;

  size_t BytesReserved() const {
    return states_.capacity() * sizeof(State) +
           edges_.capacity() * sizeof(Edge) + edge_of_.bytes();
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint32_t kRoot = 0;
  // Of the suffixes of a new token's text, the longest ones that are counted:
  // a bound for texts that repeat one token.
  static constexpr int kCountedSuffixes = 64;
  static constexpr int kContinuations = 64;  // looked at, newest first

  // All substrings that end at the same places.
  struct State {
    uint32_t length = 0;    // of the longest one
    uint32_t link = kNone;  // state of the longest suffix outside
    uint32_t count = 0;     // occurrences
    uint32_t first = 0;     // where the first one ends
    uint32_t first_edge = kNone;
  };
  struct Edge {
    uint32_t from = 0;
    TokenId token = 0;
    uint32_t target = 0;
    uint32_t next = kNone;  // of the same state
  };
  struct Continuation {
    uint32_t edge = kNone;
    bool split = false;  // others are not rare
  };

  uint32_t AddState(uint32_t length, uint32_t first);
  uint32_t& SlotOf(uint32_t state, TokenId token);
  Edge* Find(uint32_t state, TokenId token);
  void AddEdge(uint32_t state, TokenId token, uint32_t target);
  // A state of its own for the strings of `state` not longer than `length`.
  uint32_t Split(uint32_t state, uint32_t length);
  Continuation MostFrequent(uint32_t state) const;

  const size_t prompt_;
  std::vector<State> states_;
  std::vector<Edge> edges_;
  IndexTable edge_of_;     // by state and token
  uint32_t last_ = kRoot;  // of the whole text
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_SUFFIX_DRAFTER_H_
