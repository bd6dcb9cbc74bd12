#ifndef BATON_DECODE_WORKER_SPECULATION_NGRAM_DRAFTER_H_
#define BATON_DECODE_WORKER_SPECULATION_NGRAM_DRAFTER_H_

#include <cstdint>
#include <vector>

#include "decode_worker/speculation/drafter.h"
#include "decode_worker/speculation/index_table.h"

namespace baton::decode {

// Prompt lookup: the text goes on as it did where its last tokens occurred
// before. Of the most recent occurrences of the last two tokens the one with
// the longest match counts, the most recent one at a tie; without any, that of
// the last token. A token costs O(1).
class NgramDrafter final : public Drafter {
 public:
  static constexpr size_t kLongestMatch = 24;
  static constexpr int kOccurrences = 24;  // looked at

  // Of a text that begins with a prompt of so many tokens.
  explicit NgramDrafter(size_t prompt) : prompt_(prompt) {}

  size_t BytesFor(size_t tokens) const override;
  void Reserve(size_t tokens) override;
  void Append(TokenId token) override;
  void Propose(size_t most, std::vector<DraftToken>* draft) const override;

 private:
  // Where the match ended, and how many tokens of the text's end it covers.
  struct Match {
    uint32_t end = 0;
    size_t length = 0;
  };
  Match LongestMatch() const;
  size_t MatchLength(uint32_t end) const;
  // Where the last text that ends as the first `end` tokens do, with as many
  // tokens as the table is for, is kept by its end.
  uint32_t& SlotOf(IndexTable& table, uint32_t tokens, uint32_t end);

  const size_t prompt_;
  std::vector<TokenId> tokens_;
  // By position: the end of the previous occurrence of the two tokens that end
  // here; 0: none.
  std::vector<uint32_t> previous_;
  IndexTable pairs_, singles_;  // last end
  uint32_t single_ = 0;  // end of the last token's occurrence before; 0: none
};

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_SPECULATION_NGRAM_DRAFTER_H_
