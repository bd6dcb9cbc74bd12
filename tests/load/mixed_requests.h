#ifndef BATON_TESTS_LOAD_MIXED_REQUESTS_H_
#define BATON_TESTS_LOAD_MIXED_REQUESTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/support/process_cluster.h"

namespace baton::testing {

// A request and what it is answered on a quiet cluster.
struct PlannedRequest {
  std::string kind;  // "chat", "long prompt", "four choices", ...
  v1::GenerateRequest request;
  Answer answer;
};

// Requests of every kind that clients send, `each` of a kind, and their
// answers, one after the other. Errors name one that did not show what its
// kind is for.
absl::StatusOr<std::vector<PlannedRequest>> PlanMixedRequests(
    ProcessCluster* cluster, int each);

}  // namespace baton::testing

#endif  // BATON_TESTS_LOAD_MIXED_REQUESTS_H_
