#ifndef BATON_ROUTER_FRONT_DOOR_PROMPT_SIZES_H_
#define BATON_ROUTER_FRONT_DOOR_PROMPT_SIZES_H_

#include <atomic>
#include <cstdint>
#include <mutex>

#include "proto/generation.pb.h"
#include "router/admission/service_times.h"

namespace baton::router {

// Guesses how many tokens a prompt will come to, from how many bytes made one
// lately. Thread-safe.
class PromptSizes {
 public:
  // Hardly more than it will have, at least 1. Of token ids it is exact.
  uint64_t Guess(const v1::GenerateRequest& request) const;
  // Hardly less than it will have.
  static int64_t Most(const v1::GenerateRequest& request);
  // What it came to.
  void Saw(const v1::GenerateRequest& request, uint64_t tokens);

 private:
  std::mutex mutex_;
  RecentSamples tokens_per_byte_;  // mutex_
  std::atomic<double> fewest_{0};  // of most prompts, per byte
};

}  // namespace baton::router

#endif  // BATON_ROUTER_FRONT_DOOR_PROMPT_SIZES_H_
