#include "decode_worker/speculation/suffix_drafter.h"

#include <algorithm>

namespace baton::decode {
namespace {

uint64_t Key(uint32_t state, TokenId token) {
  return uint64_t{state} << 32 | token;
}

}  // namespace

SuffixDrafter::SuffixDrafter() { AddState(0); }

uint32_t SuffixDrafter::AddState(uint32_t length) {
  states_.push_back({.length = length});
  return static_cast<uint32_t>(states_.size() - 1);
}

SuffixDrafter::Edge* SuffixDrafter::Find(uint32_t state, TokenId token) {
  const auto it = edge_of_.find(Key(state, token));
  return it == edge_of_.end() ? nullptr : &edges_[it->second];
}

void SuffixDrafter::AddEdge(uint32_t state, TokenId token, uint32_t target) {
  const auto edge = static_cast<uint32_t>(edges_.size());
  edges_.push_back({token, target, states_[state].first_edge});
  states_[state].first_edge = edge;
  edge_of_[Key(state, token)] = edge;
}

uint32_t SuffixDrafter::Split(uint32_t state, uint32_t length) {
  const uint32_t shorter = AddState(length);
  states_[shorter].link = states_[state].link;
  states_[shorter].count = states_[state].count;
  states_[state].link = shorter;
  std::vector<Edge> copied;
  for (uint32_t e = states_[state].first_edge; e != kNone; e = edges_[e].next) {
    copied.push_back(edges_[e]);
  }
  for (auto edge = copied.rbegin(); edge != copied.rend(); ++edge) {
    AddEdge(shorter, edge->token, edge->target);
  }
  return shorter;
}

void SuffixDrafter::Append(TokenId token) {
  const uint32_t added = AddState(states_[last_].length + 1);
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
    draft->push_back({edges_[next.edge].token, Evidence(matched, next.split)});
    state = edges_[next.edge].target;
    ++matched;
  }
}

}  // namespace baton::decode
