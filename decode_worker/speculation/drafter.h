#ifndef BATON_DECODE_WORKER_SPECULATION_DRAFTER_H_
#define BATON_DECODE_WORKER_SPECULATION_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/sequence/sequence.h"
#include "common/tokens/token.h"

namespace baton::decode {

// How good a guess looks to its drafter: a class of guesses that fare alike.
// What a class is worth is learned (AcceptanceEstimate).
class Evidence {
 public:
  static constexpr size_t kLengths = 8;
  static constexpr size_t kClasses = 2 * kLengths;

  // The `matched` tokens before it, >= 1, occurred before and were followed by
  // it; `split`: often by other tokens too.
  Evidence(size_t matched, bool split)
      : index_(static_cast<uint8_t>(LengthClass(matched) +
                                    (split ? kLengths : 0))) {}

  size_t index() const { return index_; }

 private:
  // 1, 2, 3, 4, 5-6, 7-10, 11-18, more.
  static size_t LengthClass(size_t matched) {
    if (matched <= 4) return matched - 1;
    return matched <= 6 ? 4 : matched <= 10 ? 5 : matched <= 18 ? 6 : 7;
  }
  uint8_t index_;
};

struct DraftToken {
  TokenId token = 0;
  Evidence evidence;
};

// Guesses how a text goes on. One per choice; a function of the tokens fed, so
// it can be rebuilt. Wrong guesses cost time and nothing else. Pure.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // The next token of prompt or answer.
  virtual void Append(TokenId token) = 0;
  // At most `most` tokens that may follow, each given those before it. Replaces
  // what is in `draft`.
  virtual void Propose(size_t most, std::vector<DraftToken>* draft) const = 0;
};

// The drafter of a choice that begins; it is fed the prompt by its owner.
using MakeDrafter = std::function<std::unique_ptr<Drafter>(const Sequence&)>;

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_DRAFTER_H_
