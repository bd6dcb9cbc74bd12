#include "decode_worker/output_lengths.h"

#include <algorithm>
#include <bit>

namespace baton::decode {
namespace {

// Answers that count; then all count half.
constexpr uint32_t kMemory = 1024;
// Imagined answers that used up their max_tokens: what is believed without
// evidence.
constexpr double kPrior = 4;

}  // namespace

size_t OutputLengths::BucketOf(uint32_t tokens) {
  if (tokens < 16) return tokens;
  const int octave = std::bit_width(tokens) - 1;  // 4..31
  return 16 + 8 * static_cast<size_t>(octave - 4) +
         ((tokens >> (octave - 3)) & 7);
}

uint64_t OutputLengths::LastOf(size_t bucket) {
  if (bucket < 16) return bucket;
  const size_t octave = 4 + (bucket - 16) / 8, part = (bucket - 16) % 8;
  return ((9 + part) << (octave - 3)) - 1;
}

void OutputLengths::Add(uint32_t tokens, bool cut_off) {
  ++(cut_off ? cut_off_ : ended_)[BucketOf(tokens)];
  if (++total_ < kMemory) return;
  total_ = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    total_ += ended_[bucket] /= 2;
    total_ += cut_off_[bucket] /= 2;
  }
}

uint32_t OutputLengths::Predict(uint32_t generated, uint32_t max_tokens) const {
  const size_t first = BucketOf(generated + 1);
  double evidence = kPrior;
  for (size_t bucket = first; bucket < kBuckets; ++bucket) {
    evidence += ended_[bucket] + cut_off_[bucket];
  }
  double ended = 0;
  for (size_t bucket = first; bucket < kBuckets; ++bucket) {
    ended += ended_[bucket];
    if (ended < quantile_ * evidence) continue;
    return static_cast<uint32_t>(std::min<uint64_t>(
        std::max<uint64_t>(LastOf(bucket), generated + 1), max_tokens));
  }
  return max_tokens;
}

}  // namespace baton::decode
