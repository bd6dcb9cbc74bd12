#ifndef BATON_ROUTER_CLIENT_CLI_BENCH_LOAD_H_
#define BATON_ROUTER_CLIENT_CLI_BENCH_LOAD_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/monotonic_time.h"

namespace baton::cli {

// When each of `count` requests of an open loop is sent, after the start:
// exponential gaps of mean 1 / requests_per_second, so arrivals are a Poisson
// process; the first comes at 0. A function of its arguments alone.
std::vector<Duration> PoissonArrivals(double requests_per_second, size_t count,
                                      uint64_t seed);

// The prompt of request `index`: `length` tokens drawn evenly from the
// vocabulary without its first 256 ids, where byte and special tokens lie (all
// of it if it is smaller than 512). Two seeds share no prompt, so no run finds
// the blocks of an earlier one in a prefix cache.
std::vector<uint32_t> RandomPrompt(size_t length, uint32_t vocabulary_size,
                                   uint64_t seed, size_t index);

// The length of the answer of request `index`, 1..most: geometric, its mean
// `mean` (>= 1) but for what `most` cuts off. A function of its arguments
// alone.
size_t GeometricLength(size_t mean, size_t most, uint64_t seed, size_t index);

}  // namespace baton::cli

#endif  // BATON_ROUTER_CLIENT_CLI_BENCH_LOAD_H_
