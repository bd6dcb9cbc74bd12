#ifndef BATON_TESTS_BENCH_TRANSFER_BENCH_BATON_H_
#define BATON_TESTS_BENCH_TRANSFER_BENCH_BATON_H_

#include <vector>

#include "tests/bench/transfer_bench_probes.h"

namespace baton::transfer {

// TransferCore over the UCX transport, one block per message: frames with
// checksums made on one side and checked on the other, from BEGIN to VERIFIED.
Rates BatonRates(const BenchPeer& peer, bool receiver,
                 const std::vector<size_t>& sizes);

// The hand-over of a 512-token SmolLM2 prompt through two TransferThreads:
// 32 blocks of 368,640 bytes in 4 chunks, with pauses as if they were computed.
// All in milliseconds, one entry per run; filled by the receiver.
struct HandOverTimes {
  std::vector<double> reserve_to_begin;  // ticket issued to first block queued
  std::vector<double> stream;            // first to last block queued
  std::vector<double> exposed;           // last block queued to VERIFIED
  std::vector<double> acknowledge;       // VERIFIED to ACKED at the holder
};
HandOverTimes HandOver(const BenchPeer& peer, bool receiver, int runs);

}  // namespace baton::transfer

#endif  // BATON_TESTS_BENCH_TRANSFER_BENCH_BATON_H_
