#include "common/sampling/logit_blocks.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace baton {
namespace {

constexpr size_t kLanes = 8;
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Bits __attribute__((vector_size(4 * kLanes)));

constexpr int32_t kExponent = 0x7f800000;

Floats Larger(Floats a, Floats b) { return a > b ? a : b; }

float Largest(Floats values) {
  float largest = values[0];
  for (size_t lane = 1; lane < kLanes; ++lane) {
    largest = values[lane] > largest ? values[lane] : largest;
  }
  return largest;
}

// The largest of 64 logits; sets lanes of `bad` where one is not finite.
float ScanBlock(const float* logits, Bits* bad) {
  std::array<Floats, LogitBlocks::kTokens / kLanes> v;
  std::memcpy(v.data(), logits, sizeof(v));
  for (const Floats& values : v) {
    *bad |= (std::bit_cast<Bits>(values) & kExponent) == kExponent;
  }
  const Floats low = Larger(Larger(v[0], v[1]), Larger(v[2], v[3]));
  const Floats high = Larger(Larger(v[4], v[5]), Larger(v[6], v[7]));
  return Largest(Larger(low, high));
}

}  // namespace

LogitBlocks::LogitBlocks(absl::Span<const float> logits)
    : logits_(logits), maxima_((logits.size() + kTokens - 1) / kTokens) {
  Bits bad = {};
  const size_t whole = logits.size() / kTokens;
  size_t best_block = 0;
  for (size_t block = 0; block < whole; ++block) {
    maxima_[block] = ScanBlock(&logits[block * kTokens], &bad);
    if (maxima_[block] > maxima_[best_block]) best_block = block;
  }
  for (size_t lane = 0; lane < kLanes; ++lane) finite_ &= bad[lane] == 0;
  if (whole < maxima_.size()) {
    const auto rest = logits.subspan(whole * kTokens);
    maxima_[whole] = *std::max_element(rest.begin(), rest.end());
    if (maxima_[whole] > maxima_[best_block]) best_block = whole;
    finite_ &= std::all_of(rest.begin(), rest.end(),
                           [](float logit) { return std::isfinite(logit); });
  }
  best_.logit = maxima_[best_block];
  const auto block = logits.subspan(best_block * kTokens, kTokens);
  const auto first = std::find(block.begin(), block.end(), best_.logit);
  best_.token = static_cast<TokenId>(first - logits.begin());
}

}  // namespace baton
