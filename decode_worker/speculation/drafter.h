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
  static constexpr size_t kClasses = 4 * kLengths;

  // The `matched` tokens before it, >= 1, occurred before and were followed by
  // it; `split`: often by other tokens too; `quoted`: in the prompt already,
  // not only in the answer itself.
  Evidence(size_t matched, bool split, bool quoted)
      : index_(
            static_cast<uint8_t>(IndexOf(LengthOf(matched), split, quoted))) {}

  static constexpr size_t IndexOf(size_t length, bool split, bool quoted) {
    return length + (split ? kLengths : 0) + (quoted ? 0 : 2 * kLengths);
  }
  size_t index() const { return index_; }
  bool quoted() const { return index_ < 2 * kLengths; }

 private:
  // 1, 2, 3, 4, 5-6, 7-10, 11-18, more.
  static size_t LengthOf(size_t matched) {
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
  // Memory of one that has room for so many tokens, at most.
  virtual size_t BytesFor(size_t tokens) const = 0;
  // Makes room for so many tokens, not fewer than were appended.
  virtual void Reserve(size_t tokens) = 0;
  // The next token of prompt or answer. Requires room.
  virtual void Append(TokenId token) = 0;
  // At most `most` tokens that may follow, each given those before it. Replaces
  // what is in `draft`.
  virtual void Propose(size_t most, std::vector<DraftToken>* draft) const = 0;
};

// The drafter of a choice that begins; it is fed the prompt by its owner.
using MakeDrafter = std::function<std::unique_ptr<Drafter>(const Sequence&)>;
// The best first, each smaller than those before it.
using DrafterKinds = std::vector<MakeDrafter>;

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_DRAFTER_H_
