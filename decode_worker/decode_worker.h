#ifndef BATON_DECODE_WORKER_DECODE_WORKER_H_
#define BATON_DECODE_WORKER_DECODE_WORKER_H_

#include "common/worker/session_worker.h"
#include "decode_worker/decode_engine.h"
#include "proto/decode.grpc.pb.h"

namespace baton::decode {

// A DecodeEngine behind the gRPC service baton.v1.DecodeWorker.
using DecodeWorker = SessionWorker<DecodeEngine, v1::DecodeWorker>;

}  // namespace baton::decode

#endif  // BATON_DECODE_WORKER_DECODE_WORKER_H_
