#ifndef BATON_TESTS_BENCH_TRANSFER_BENCH_PROBES_H_
#define BATON_TESTS_BENCH_TRANSFER_BENCH_PROBES_H_

#include <cstddef>
#include <map>
#include <vector>

#include "tests/bench/transfer_bench_peer.h"

namespace baton::transfer {

// Bytes per second by message size.
using Rates = std::map<size_t, double>;

// What the machine can do at best, measured by the receiving process. None of
// them computes a checksum. The holder's result is empty.
Rates MemcpyProbe(const std::vector<size_t>& sizes);
Rates TcpProbe(const BenchPeer& peer, bool receiver,
               const std::vector<size_t>& sizes);
// UCX active messages with UCX's own defaults and without error handling;
// UCX_TLS chooses the transports.
Rates UcxProbe(const BenchPeer& peer, bool receiver,
               const std::vector<size_t>& sizes);

}  // namespace baton::transfer

#endif  // BATON_TESTS_BENCH_TRANSFER_BENCH_PROBES_H_
