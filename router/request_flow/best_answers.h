#ifndef BATON_ROUTER_REQUEST_FLOW_BEST_ANSWERS_H_
#define BATON_ROUTER_REQUEST_FLOW_BEST_ANSWERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "proto/generation.pb.h"

namespace baton::router {

// Holds what the choices of a request say until all have ended; then only the
// best are told. A choice is better if the mean of its tokens' logprobs is
// higher; of equal ones that with the lower index. Pure; not thread-safe.
class BestAnswers {
 public:
  // `count` of the choices, with or without logprobs.
  BestAnswers(uint32_t count, bool tell_logprobs)
      : count_(count), tell_logprobs_(tell_logprobs) {}

  // A piece takes no more once it has so many bytes.
  static constexpr size_t kPieceBytes = 32 << 10;
  // An upper bound of the memory that `choices` answers take, of at most
  // `tokens` tokens each, a token at most `token_bytes` of text.
  // `top_logprobs`: alternatives to each; nullopt: no logprobs are told.
  static uint64_t MostBytes(uint64_t choices, uint64_t tokens,
                            uint64_t token_bytes,
                            std::optional<uint32_t> top_logprobs);

  // Tokens of one choice, in order, with a logprob each.
  void Add(v1::GenerateEvent event);
  // The best in pieces, numbered from 0, the best of all first and whole
  // before the next; they are gone then.
  std::vector<v1::GenerateEvent> Take();

 private:
  struct Answer {
    std::vector<v1::GenerateEvent> pieces;
    size_t last_bytes = 0;  // of the last piece
    uint64_t tokens = 0;
    double logprobs = 0;  // sum
    double mean() const {
      return tokens == 0 ? 0 : logprobs / static_cast<double>(tokens);
    }
  };

  const uint32_t count_;
  const bool tell_logprobs_;
  std::map<uint32_t, Answer> answers_;  // by choice
};

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_BEST_ANSWERS_H_
