#ifndef BATON_TESTS_UNIT_DECODE_WORKER_ENGINE_ANSWERS_H_
#define BATON_TESTS_UNIT_DECODE_WORKER_ENGINE_ANSWERS_H_

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/unit/decode_worker/engine_pair.h"

namespace baton {

// Per choice: (index, token, bits of the logprob, text).
using Output = std::map<
    uint32_t,
    std::vector<std::tuple<uint32_t, uint32_t, uint32_t, std::string>>>;

struct EngineAnswer {
  Output output;
  v1::AttemptDone done;
};

template <class Tokens>
void Collect(uint64_t attempt, const Tokens& tokens, Output* output) {
  for (const v1::TokenDelta& token : tokens) {
    if (token.attempt_id() != attempt) continue;
    (*output)[token.choice()].emplace_back(
        token.index(), token.token_id(),
        std::bit_cast<uint32_t>(token.logprob()), token.text());
  }
}

// Greedy, with nothing that changes logits, to the last of `tokens` tokens.
inline v1::SequenceSpec GreedySpec(uint32_t prompt, uint32_t choices,
                                   uint32_t tokens) {
  v1::SequenceSpec spec;
  for (uint32_t i = 0; i < prompt; ++i) {
    spec.add_prompt_token_ids(3 + (i * 37 + prompt) % 250);
  }
  v1::SamplingSpec& sampling = *spec.mutable_sampling();
  sampling.set_top_p(1);
  sampling.set_repetition_penalty(1);
  sampling.set_seed(99);
  sampling.set_logprobs(true);
  spec.set_max_tokens(tokens);
  spec.set_ignore_eos(true);
  for (uint32_t i = 0; i < choices; ++i) spec.add_choices()->set_index(i);
  return spec;
}

// Adds the rest of an attempt's answer.
inline void Finish(EnginePair& pair, uint64_t attempt, EngineAnswer* answer) {
  while (answer->done.attempt_id() == 0) {
    const auto event =
        pair.events.Take<v1::DecodeEvent>([](const v1::DecodeEvent& e) {
          return e.has_tokens() || e.has_done();
        });
    Collect(attempt, event.tokens().tokens(), &answer->output);
    answer->done = event.done();
  }
}

// An answer whose prompt the decode worker reads itself.
inline EngineAnswer ServedLocally(EnginePair& pair, uint64_t attempt,
                                  const v1::SequenceSpec& spec) {
  EngineAnswer answer;
  pair.Serve(attempt, spec);
  Finish(pair, attempt, &answer);
  return answer;
}

// An answer whose prompt the prefill worker reads.
inline EngineAnswer HandedOver(EnginePair& pair, uint64_t attempt,
                               const v1::SequenceSpec& spec) {
  EngineAnswer answer;
  const v1::Ticket ticket = pair.Reserve(attempt, spec);
  pair.StartPrefill(attempt, spec, ticket);
  const auto first = pair.events.Take<v1::PrefillEvent>(
      [](const v1::PrefillEvent& e) { return e.has_first_tokens(); });
  Collect(attempt, first.first_tokens().tokens(), &answer.output);
  const auto landed = pair.events.Take<v1::DecodeEvent>(
      [](const v1::DecodeEvent& e) { return e.has_landed(); });
  EXPECT_EQ(landed.landed().blocks(), BlocksFor(ticket.token_count()));
  EXPECT_EQ(landed.landed().transport(), "loopback");
  Finish(pair, attempt, &answer);
  pair.events.Take<v1::PrefillEvent>(
      [](const v1::PrefillEvent& e) { return e.has_handed_over(); });
  return answer;
}

// Attempts that are cancelled at random moments, local and handed over ones,
// leave nothing behind. `make` gives the spec for (prompt, choices).
inline void CancelAtRandomMoments(
    EnginePair& pair, int attempts,
    const std::function<v1::SequenceSpec(uint32_t, uint32_t)>& make) {
  constexpr uint64_t kFirst = 1000;
  std::mt19937 random(3);
  for (uint64_t attempt = kFirst; attempt < kFirst + attempts; ++attempt) {
    const auto spec = make(1 + random() % 120, 1 + random() % 2);
    if (random() % 3 == 0) {
      pair.Serve(attempt, spec);
    } else {
      pair.StartPrefill(attempt, spec, pair.Reserve(attempt, spec));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
    v1::DecodeCommand release;
    release.mutable_release()->set_attempt_id(attempt);
    v1::PrefillCommand cancel;
    cancel.mutable_cancel()->set_attempt_id(attempt);
    pair.Command(release);
    pair.Command(cancel);
    if (random() % 4 == 0) pair.ExpectCleanPools();
  }
  pair.ExpectCleanPools();
}

}  // namespace baton

#endif  // BATON_TESTS_UNIT_DECODE_WORKER_ENGINE_ANSWERS_H_
