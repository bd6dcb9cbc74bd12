#ifndef BATON_ROUTER_ROUTING_WORKER_INDEX_H_
#define BATON_ROUTER_ROUTING_WORKER_INDEX_H_

#include <cstdint>

#include "common/base/ids.h"

namespace baton::router {

// One configured or discovered worker address in this router process; never
// used twice.
using WorkerIndex = StrongId<struct WorkerIndexTag, uint32_t>;

}  // namespace baton::router

#endif  // BATON_ROUTER_ROUTING_WORKER_INDEX_H_
