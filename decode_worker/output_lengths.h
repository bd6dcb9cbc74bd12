#ifndef BATON_DECODE_WORKER_OUTPUT_LENGTHS_H_
#define BATON_DECODE_WORKER_OUTPUT_LENGTHS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace baton::decode {

// How long answers were lately, to say how long one in progress will be. A
// histogram of bounded size in which old answers count less and less; an
// answer that its max_tokens cut off says only that it wanted to be longer.
// Pure.
class OutputLengths {
 public:
  // The share of answers that shall be no longer than predicted; 1: predict
  // max_tokens always.
  explicit OutputLengths(double quantile) : quantile_(quantile) {}

  // An answer ended after `tokens`; `cut_off`: only by its max_tokens.
  void Add(uint32_t tokens, bool cut_off);

  // Tokens in the end of an answer with `generated` so far, of answers that
  // were at least as long: in generated + 1..max_tokens. max_tokens while
  // there is little evidence. Requires generated < max_tokens.
  uint32_t Predict(uint32_t generated, uint32_t max_tokens) const;

 private:
  // Lengths 0..15 each, then eight per octave.
  static constexpr size_t kBuckets = 16 + 8 * 28;
  static size_t BucketOf(uint32_t tokens);
  static uint64_t LastOf(size_t bucket);

  double quantile_;
  std::array<uint32_t, kBuckets> ended_{}, cut_off_{};
  uint32_t total_ = 0;
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_OUTPUT_LENGTHS_H_
