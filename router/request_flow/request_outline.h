#ifndef BATON_ROUTER_REQUEST_FLOW_REQUEST_OUTLINE_H_
#define BATON_ROUTER_REQUEST_FLOW_REQUEST_OUTLINE_H_

#include <cstdint>
#include <string>

#include "common/base/monotonic_time.h"

namespace baton::router {

// What is known of a request before its prompt has become tokens, which is most
// of what a router does for one.
struct RequestOutline {
  std::string tenant;
  int priority = 1;
  MonotonicTime deadline;
  // The request will come to no less.
  uint64_t prompt_tokens = 1;
  uint64_t max_tokens = 1;
};

}  // namespace baton::router

#endif  // BATON_ROUTER_REQUEST_FLOW_REQUEST_OUTLINE_H_
