#ifndef BATON_ROUTER_REQUEST_FLOW_BEST_ANSWERS_H_
#define BATON_ROUTER_REQUEST_FLOW_BEST_ANSWERS_H_

#include <cstdint>
#include <map>
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

  // Tokens of one choice, in order, with a logprob each.
  void Add(v1::GenerateEvent event);
  // The best, numbered from 0, the best of all first; they are gone then.
  std::vector<v1::GenerateEvent> Take();

 private:
  struct Answer {
    v1::GenerateEvent event;
    double logprobs = 0;  // sum
    double mean() const {
      return event.token_ids().empty() ? 0 : logprobs / event.token_ids_size();
    }
  };

  const uint32_t count_;
  const bool tell_logprobs_;
  std::map<uint32_t, Answer> answers_;  // by choice
};

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_BEST_ANSWERS_H_
