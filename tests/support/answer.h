#ifndef BATON_TESTS_SUPPORT_ANSWER_H_
#define BATON_TESTS_SUPPORT_ANSWER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/monotonic_time.h"
#include "proto/generation.grpc.pb.h"

namespace baton::testing {

// What one Generate call brought.
struct Answer {
  absl::Status status;
  // By choice index.
  std::map<uint32_t, std::vector<uint32_t>> tokens;
  std::map<uint32_t, std::string> text;
  std::map<uint32_t, std::vector<float>> logprobs;
  std::map<uint32_t, v1::Finish> finish;
  v1::Usage usage;
  v1::Served served;
  int events = 0;
};

// Sees every event; false cancels the call.
using OnEvent = std::function<bool(const v1::GenerateEvent&)>;

// Runs one request to its end.
Answer RunRequest(v1::Generation::Stub& stub,
                  const v1::GenerateRequest& request,
                  const OnEvent& on_event = nullptr,
                  Duration deadline = std::chrono::seconds(60));

// OK when both ended well with the same tokens, bits of logprobs, text, ends
// and usage; otherwise the first difference. How they were served may differ.
absl::Status SameAnswer(const Answer& got, const Answer& want);

// A fixed prompt of `prompt_tokens` ids; equal arguments, equal request. Every
// sampling feature that carries state over a replay is in use.
v1::GenerateRequest FixedRequest(int prompt_tokens, int max_tokens,
                                 uint64_t seed);

}  // namespace baton::testing

#endif  // BATON_TESTS_SUPPORT_ANSWER_H_
