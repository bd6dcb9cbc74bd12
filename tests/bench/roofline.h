#ifndef BATON_TESTS_BENCH_ROOFLINE_H_
#define BATON_TESTS_BENCH_ROOFLINE_H_

#include <cstdint>

#include "common/model/model.h"
#include "common/model_file/gguf.h"
#include "kernels/cpu/cpu_backend.h"

namespace baton {

// The least time a machine can take for the work of a model: weights are read
// or multiplied, whichever is slower, then K and V are read or multiplied.
//   t = max(weight_bytes / bandwidth, 2 · products / compute)
//     + max(kv_bytes / bandwidth, attention_operations / compute)
// Compute is the peak of int8 dot products for quantised weights and INT8
// caches, of fp32 FMA for others.
struct MachinePeaks {
  double int8 = 0;  // operations per second
  double fp32 = 0;
  double barrier_seconds = 0;
};

// Probes of `threads` threads with the instructions of `isa`.
MachinePeaks ProbePeaks(kernels::Isa isa, int threads);

class Roofline {
 public:
  // Counts the matrices of `file`; neither argument is kept.
  Roofline(const GgufFile& file, const Model& model);

  // Bytes that a step of `sequences` decode rows at `depth` touches.
  double DecodeBytes(uint32_t sequences, uint32_t depth) const;

  // Seconds of `tokens` prompt tokens after `depth` cached ones, in chunks, the
  // last row's logits included, or of one decode step of `sequences` rows at
  // `depth`. `bandwidth` in bytes per second.
  double PrefillSeconds(uint32_t tokens, uint32_t depth, uint32_t chunk,
                        const MachinePeaks& peaks, double bandwidth) const;
  double DecodeSeconds(uint32_t sequences, uint32_t depth,
                       const MachinePeaks& peaks, double bandwidth) const;

 private:
  // Of `pairs` (query position, visible position) pairs.
  double AttentionOperations(double pairs) const;

  bool quantized_ = false;
  bool int8_cache_ = false;
  double layer_bytes_ = 0;
  double layer_products_ = 0;  // per token
  double output_bytes_ = 0;    // of the matrix of the logits
  double output_products_ = 0;
  double kv_bytes_per_token_ = 0;
  double operations_per_pair_ = 0;
};

}  // namespace baton

#endif  // BATON_TESTS_BENCH_ROOFLINE_H_
