#ifndef BATON_TESTS_SUPPORT_RANDOM_CANCELS_H_
#define BATON_TESTS_SUPPORT_RANDOM_CANCELS_H_

#include <functional>
#include <random>

#include "common/base/monotonic_time.h"
#include "proto/generation.grpc.pb.h"

namespace baton::testing {

struct CancelledLoad {
  int clients = 8;  // at once
  int requests = 200;
  std::function<v1::GenerateRequest(std::mt19937*)> make_request;
  Duration longest;  // before a request is cancelled, if it has not ended
};

// How the requests ended; `other` is neither well nor CANCELLED.
struct CancelledEnds {
  int cancelled = 0, finished = 0, other = 0;
};

// Sends the requests and cancels each after a random time.
CancelledEnds CancelAtRandom(v1::Generation::Stub& stub,
                             const CancelledLoad& load);

}  // namespace baton::testing

#endif  // BATON_TESTS_SUPPORT_RANDOM_CANCELS_H_
