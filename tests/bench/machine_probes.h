#ifndef BATON_TESTS_BENCH_MACHINE_PROBES_H_
#define BATON_TESTS_BENCH_MACHINE_PROBES_H_

#include <cstddef>

#include "kernels/cpu/cpu_backend.h"

namespace baton {

// What this machine can do at best on `threads` threads at once: the limits
// that benchmarks divide by. Each is the best of several short tries, since
// whatever else runs can only slow a probe down; each takes some 50 ms.

// Bytes per second of reading `bytes` of memory, over and over: the caches
// help where they would help the code under test, so pass what that reads.
double ReadBandwidth(size_t bytes, int threads);

// Operations per second (a multiplication and an addition are two) of int8 dot
// products and of fp32 FMA from registers, with the instructions of `isa`
// (kScalar: those of AVX2, which its build is allowed to use; kAmx: those of
// AVX-512).
double Int8Peak(kernels::Isa isa, int threads);
double Fp32Peak(kernels::Isa isa, int threads);

// Seconds between one thread's store and all others' having answered it.
double BarrierSeconds(int threads);

}  // namespace baton

#endif  // BATON_TESTS_BENCH_MACHINE_PROBES_H_
