#include "common/sampling/candidates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kernels/api/exact_math.h"

namespace baton {
namespace {

constexpr size_t kLanes = 16;
constexpr int kRanges = 2048;
constexpr float kRangesPerNat = 64;
constexpr float kNone = -std::numeric_limits<float>::infinity();

// Ranges partition the logits by distance from the best one, in rank order.
int RangeOf(float logit, float best) {
  const float range = (best - logit) * kRangesPerNat;
  return range < kRanges - 1 ? static_cast<int>(range) : kRanges - 1;
}

std::vector<Candidate> InRange(absl::Span<const float> logits, float best,
                               int range, const Candidate& within) {
  std::vector<Candidate> found;
  for (size_t i = 0; i < logits.size(); ++i) {
    const Candidate candidate{logits[i], static_cast<TokenId>(i)};
    if (logits[i] != kNone && RangeOf(logits[i], best) == range &&
        Keeps(within, candidate)) {
      found.push_back(candidate);
    }
  }
  return found;
}

bool RankOrder(const Candidate& a, const Candidate& b) {
  return RanksBefore(a, b);
}

}  // namespace

bool AllFinite(absl::Span<const float> logits) {
  constexpr uint32_t kExponent = 0x7f800000;
  std::array<uint32_t, kLanes> largest{};
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t exponent =
          std::bit_cast<uint32_t>(logits[i + lane]) & kExponent;
      largest[lane] = std::max(largest[lane], exponent);
    }
  }
  for (; i < logits.size(); ++i) {
    largest[0] =
        std::max(largest[0], std::bit_cast<uint32_t>(logits[i]) & kExponent);
  }
  return *std::max_element(largest.begin(), largest.end()) < kExponent;
}

Candidate Best(absl::Span<const float> logits) {
  std::array<float, kLanes> largest;
  largest.fill(kNone);
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = logits[i + lane];
      largest[lane] = logit > largest[lane] ? logit : largest[lane];
    }
  }
  for (; i < logits.size(); ++i) {
    largest[0] = std::max(largest[0], logits[i]);
  }
  const float best = *std::max_element(largest.begin(), largest.end());
  const auto first = std::find(logits.begin(), logits.end(), best);
  return {best, static_cast<TokenId>(first - logits.begin())};
}

Candidate TopKCut(absl::Span<const float> logits, const Candidate& best,
                  size_t k) {
  std::array<uint32_t, kRanges> counts{};
  for (const float logit : logits) {
    if (logit != kNone) ++counts[RangeOf(logit, best.logit)];
  }
  int range = 0;
  while (range < kRanges && counts[range] < k) k -= counts[range++];
  if (range == kRanges) return Candidate();
  std::vector<Candidate> members =
      InRange(logits, best.logit, range, Candidate());
  std::nth_element(members.begin(), members.begin() + (k - 1), members.end(),
                   RankOrder);
  return members[k - 1];
}

Candidate TopPCut(absl::Span<const float> logits, const Candidate& best,
                  float temperature, float p, const Candidate& within) {
  const auto weight = [&](float logit) {
    return kernels::Exp((logit - best.logit) / temperature);
  };
  std::array<double, kRanges> masses{};
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == kNone || logits[i] < within.logit ||
        !Keeps(within, {logits[i], static_cast<TokenId>(i)})) {
      continue;
    }
    const double mass = weight(logits[i]);
    masses[RangeOf(logits[i], best.logit)] += mass;
    total += mass;
  }
  const double target = static_cast<double>(p) * total;
  double sum = 0;
  int range = 0;
  while (range < kRanges && sum + masses[range] < target) {
    sum += masses[range++];
  }
  if (range == kRanges) return within;
  std::vector<Candidate> members = InRange(logits, best.logit, range, within);
  std::sort(members.begin(), members.end(), RankOrder);
  for (const Candidate& member : members) {
    sum += weight(member.logit);
    if (sum >= target) return member;
  }
  return members.empty() ? within : members.back();
}

std::vector<Candidate> RankedUpTo(absl::Span<const float> logits,
                                  const Candidate& last) {
  std::vector<Candidate> kept;
  for (size_t i = 0; i < logits.size(); ++i) {
    const Candidate candidate{logits[i], static_cast<TokenId>(i)};
    if (logits[i] != kNone && Keeps(last, candidate)) {
      kept.push_back(candidate);
    }
  }
  std::sort(kept.begin(), kept.end(), RankOrder);
  return kept;
}

}  // namespace baton
