#ifndef BATON_TESTS_BENCH_TRANSFER_BENCH_BATON_H_
#define BATON_TESTS_BENCH_TRANSFER_BENCH_BATON_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kv_transfer/transport.h"
#include "tests/bench/transfer_bench_probes.h"

namespace baton::transfer {

using MakeTransport = std::function<std::unique_ptr<Transport>()>;
// Of a mode: "shm" and "tcp" are UCX, for which UCX_TLS says the rest, "grpc"
// and "grpc_tls", whose certificates lie in the folder that the variable
// kCertificates names.
inline constexpr char kCertificates[] = "BATON_BENCH_CERTIFICATES";
MakeTransport TransportMaker(const std::string& mode);

// TransferCore over a transport, one block per message: frames with
// checksums made on one side and checked on the other, from BEGIN to VERIFIED.
Rates BatonRates(const MakeTransport& make, const BenchPeer& peer,
                 bool receiver, const std::vector<size_t>& sizes);

// The hand-over of a 512-token SmolLM2 prompt through two TransferThreads:
// 32 blocks of 368,640 bytes in 4 chunks, with pauses as if they were computed.
// All in milliseconds, one entry per run; filled by the receiver.
struct HandOverTimes {
  std::vector<double> reserve_to_begin;  // ticket issued to first block queued
  std::vector<double> stream;            // first to last block queued
  std::vector<double> exposed;           // last block queued to VERIFIED
  std::vector<double> acknowledge;       // VERIFIED to ACKED at the holder
};
HandOverTimes HandOver(const MakeTransport& make, const BenchPeer& peer,
                       bool receiver, int runs);

}  // namespace baton::transfer

#endif  // BATON_TESTS_BENCH_TRANSFER_BENCH_BATON_H_
