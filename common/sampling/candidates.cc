#include "common/sampling/candidates.h"

#include <algorithm>
#include <array>
#include <functional>

#include "kernels/api/exact_math.h"

namespace baton {
namespace {

constexpr int kRanges = 2048;
constexpr float kRangesPerNat = 64;
constexpr float kNone = -std::numeric_limits<float>::infinity();

// Ranges partition the logits by distance from the best one, in rank order.
int RangeOf(float logit, float best) {
  const float range = (best - logit) * kRangesPerNat;
  return range < kRanges - 1 ? static_cast<int>(range) : kRanges - 1;
}

bool RankOrder(const Candidate& a, const Candidate& b) {
  return RanksBefore(a, b);
}

// All that `last` keeps, by id.
std::vector<Candidate> KeptBy(const LogitBlocks& blocks,
                              const Candidate& last) {
  std::vector<Candidate> kept;
  blocks.ForEach([&](float largest) { return largest >= last.logit; },
                 [&](TokenId token, float logit) {
                   const Candidate candidate = {logit, token};
                   if (logit != kNone && Keeps(last, candidate)) {
                     kept.push_back(candidate);
                   }
                 });
  return kept;
}

// What one block's tokens weigh, and where.
struct BlockWeights {
  BlockWeights(absl::Span<const float> logits, float best, float temperature) {
    const float* from = logits.data();
    const size_t n = logits.size();
    for (size_t i = 0; i < n; ++i) {
      weight[i] = kernels::Exp((from[i] - best) / temperature);
    }
    for (size_t i = 0; i < n; ++i) range[i] = RangeOf(from[i], best);
  }

  float weight[LogitBlocks::kTokens];
  int range[LogitBlocks::kTokens];
};

struct Masses {
  std::array<double, kRanges> of_range{};
  double total = 0;
};

Masses AddMasses(const LogitBlocks& blocks, float temperature,
                 const Candidate& within) {
  constexpr size_t kTokens = LogitBlocks::kTokens;
  const float best = blocks.best().logit;
  Masses masses;
  double total = 0;  // in a register: each addition waits for the last
  for (size_t block = 0; block < blocks.maxima().size(); ++block) {
    if (blocks.maxima()[block] < within.logit) continue;
    const auto logits = blocks.logits().subspan(block * kTokens, kTokens);
    const auto token = static_cast<TokenId>(block * kTokens);
    const BlockWeights of(logits, best, temperature);
    for (size_t i = 0; i < logits.size(); ++i) {
      // Nothing is what -infinity adds, too.
      if (of.weight[i] == 0 ||
          !Keeps(within, {logits[i], token + static_cast<TokenId>(i)}))
        continue;
      masses.of_range[of.range[i]] += of.weight[i];
      total += of.weight[i];
    }
  }
  masses.total = total;
  return masses;
}

}  // namespace

Candidate TopKCut(const LogitBlocks& blocks, size_t k) {
  // k blocks hold k candidates no worse than the least of their maxima.
  float level = kNone;
  if (k <= blocks.maxima().size()) {
    std::vector<float> maxima(blocks.maxima().begin(), blocks.maxima().end());
    std::nth_element(maxima.begin(), maxima.begin() + (k - 1), maxima.end(),
                     std::greater<float>());
    level = maxima[k - 1];
  }
  std::vector<Candidate> members = KeptBy(blocks, {.logit = level});
  if (members.size() < k) return Candidate();
  std::nth_element(members.begin(), members.begin() + (k - 1), members.end(),
                   RankOrder);
  return members[k - 1];
}

Candidate TopPCut(const LogitBlocks& blocks, float temperature, float p,
                  const Candidate& within) {
  const float best = blocks.best().logit;
  const Masses masses = AddMasses(blocks, temperature, within);
  const double target = static_cast<double>(p) * masses.total;
  double sum = 0;
  int range = 0;
  while (range < kRanges && sum + masses.of_range[range] < target) {
    sum += masses.of_range[range++];
  }
  if (range == kRanges) return within;
  std::vector<Candidate> members;
  blocks.ForEach([&](float largest) { return RangeOf(largest, best) <= range; },
                 [&](TokenId token, float logit) {
                   const Candidate candidate = {logit, token};
                   if (logit != kNone && RangeOf(logit, best) == range &&
                       Keeps(within, candidate)) {
                     members.push_back(candidate);
                   }
                 });
  std::sort(members.begin(), members.end(), RankOrder);
  for (const Candidate& member : members) {
    sum += kernels::Exp((member.logit - best) / temperature);
    if (sum >= target) return member;
  }
  return members.empty() ? within : members.back();
}

std::vector<Candidate> RankedUpTo(const LogitBlocks& blocks,
                                  const Candidate& last) {
  std::vector<Candidate> kept = KeptBy(blocks, last);
  std::sort(kept.begin(), kept.end(), RankOrder);
  return kept;
}

}  // namespace baton
