#include "decode_worker/speculation/suffix_drafter.h"

#include <algorithm>

namespace baton::decode {
namespace {

// Of a suffix automaton over so many tokens, at most.
size_t MostStates(size_t tokens) { return 2 * tokens + 2; }
size_t MostEdges(size_t tokens) { return 3 * tokens + 1; }

}  // namespace

SuffixDrafter::SuffixDrafter(size_t prompt) : prompt_(prompt) {
  AddState(0, 0);
}

size_t SuffixDrafter::BytesFor(size_t tokens) const {
  return MostStates(tokens) * sizeof(State) + MostEdges(tokens) * sizeof(Edge) +
         IndexTable::BytesFor(MostEdges(tokens));
}

void SuffixDrafter::Reserve(size_t tokens) {
  states_.reserve(MostStates(tokens));
  edges_.reserve(MostEdges(tokens));
  edge_of_.Reset(MostEdges(tokens));
  for (uint32_t edge = 0; edge < edges_.size(); ++edge) {
    SlotOf(edges_[edge].from, edges_[edge].token) = edge;
  }
}

uint32_t& SuffixDrafter::SlotOf(uint32_t state, TokenId token) {
  return edge_of_.Find(
      IndexTable::Hash(uint64_t{state} << 32 | token), [&](uint32_t edge) {
        return edges_[edge].from == state && edges_[edge].token == token;
      });
}

uint32_t SuffixDrafter::AddState(uint32_t length, uint32_t first) {
  states_.push_back({.length = length, .first = first});
  return static_cast<uint32_t>(states_.size() - 1);
}

SuffixDrafter::Edge* SuffixDrafter::Find(uint32_t state, TokenId token) {
  const uint32_t edge = SlotOf(state, token);
  return edge == IndexTable::kNone ? nullptr : &edges_[edge];
}

void SuffixDrafter::AddEdge(uint32_t state, TokenId token, uint32_t target) {
  const auto edge = static_cast<uint32_t>(edges_.size());
  edges_.push_back({state, token, target, states_[state].first_edge});
  states_[state].first_edge = edge;
  SlotOf(state, token) = edge;
}

uint32_t SuffixDrafter::Split(uint32_t state, uint32_t length) {
  const uint32_t shorter = AddState(length, states_[state].first);
  states_[shorter].link = states_[state].link;
  states_[shorter].count = states_[state].count;
  states_[state].link = shorter;
  std::vector<uint32_t> copied;
  for (uint32_t e = states_[state].first_edge; e != kNone; e = edges_[e].next) {
    copied.push_back(e);
  }
  for (auto edge = copied.rbegin(); edge != copied.rend(); ++edge) {
    AddEdge(shorter, edges_[*edge].token, edges_[*edge].target);
  }
  return shorter;
}

void SuffixDrafter::Append(TokenId token) {
  const uint32_t added =
      AddState(states_[last_].length + 1, states_[last_].length + 1);
  uint32_t state = last_;
  while (state != kNone && Find(state, token) == nullptr) {
    AddEdge(state, token, added);
    state = states_[state].link;
  }
  uint32_t link = kRoot;
  if (state != kNone) {
    link = Find(state, token)->target;
    const uint32_t length = states_[state].length + 1;
    if (states_[link].length != length) {
      const uint32_t longer = link;
      link = Split(longer, length);
      for (Edge* edge; state != kNone; state = states_[state].link) {
        edge = Find(state, token);
        if (edge == nullptr || edge->target != longer) break;
        edge->target = link;
      }
    }
  }
  states_[added].link = link;
  last_ = added;
  uint32_t suffix = added;
  for (int i = 0; i < kCountedSuffixes && suffix != kRoot; ++i) {
    ++states_[suffix].count;
    suffix = states_[suffix].link;
  }
}

SuffixDrafter::Continuation SuffixDrafter::MostFrequent(uint32_t state) const {
  Continuation best;
  uint32_t most = 0, all = 0;
  uint32_t edge = states_[state].first_edge;
  for (int i = 0; i < kContinuations && edge != kNone; ++i) {
    const uint32_t count = states_[edges_[edge].target].count;
    all += count;
    if (count > most) {
      most = count;
      best.edge = edge;
    }
    edge = edges_[edge].next;
  }
  best.split = 4 * (all - most) > all;
  return best;
}

void SuffixDrafter::Propose(size_t most, std::vector<DraftToken>* draft) const {
  draft->clear();
  if (last_ == kRoot) return;
  uint32_t state = states_[last_].link;
  size_t matched = states_[state].length;
  while (draft->size() < most) {
    // The end of the text goes on where its longest suffix did before.
    while (state != kRoot && states_[state].first_edge == kNone) {
      state = states_[state].link;
      matched = std::min<size_t>(matched, states_[state].length);
    }
    if (state == kRoot) return;
    const Continuation next = MostFrequent(state);
    const bool quoted = states_[edges_[next.edge].target].first <= prompt_;
    draft->push_back(
        {edges_[next.edge].token, Evidence(matched, next.split, quoted)});
    state = edges_[next.edge].target;
    ++matched;
  }
}

}  // namespace baton::decode
