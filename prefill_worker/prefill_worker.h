#ifndef BATON_PREFILL_WORKER_PREFILL_WORKER_H_
#define BATON_PREFILL_WORKER_PREFILL_WORKER_H_

#include "common/worker/session_worker.h"
#include "prefill_worker/prefill_engine.h"
#include "proto/prefill.grpc.pb.h"

namespace baton::prefill {

// A PrefillEngine behind the gRPC service baton.v1.PrefillWorker.
using PrefillWorker = SessionWorker<PrefillEngine, v1::PrefillWorker>;

}  // namespace baton::prefill

#endif  // BATON_PREFILL_WORKER_PREFILL_WORKER_H_
