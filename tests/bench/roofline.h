#ifndef BATON_TESTS_BENCH_ROOFLINE_H_
#define BATON_TESTS_BENCH_ROOFLINE_H_

#include <cstdint>

#include "common/model/model.h"
#include "common/model_file/gguf.h"
#include "common/weights/load_options.h"
#include "kernels/cpu/cpu_backend.h"

namespace baton {

// The least time a machine can take for the work of a model: weights are read
// or multiplied, whichever is slower, then K and V are read or multiplied.
//   t = max(weight_bytes / bandwidth, Σ 2 · products / compute)
//     + max(kv_bytes / bandwidth, attention_operations / compute)
// Compute is the peak of int8 dot products for quantised matrices and INT8
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
  // Counts the matrices of `file` as they are loaded with `format`; no argument
  // is kept.
  Roofline(const GgufFile& file, WeightFormat format, const Model& model);

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

  // Of matrices that a row is multiplied with.
  struct Matrices {
    void Add(const GgufTensor& tensor, kernels::TensorType type);
    // Least seconds of the products of `rows` rows.
    double ComputeSeconds(double rows, const MachinePeaks& peaks) const;

    double bytes = 0;
    double int8_products = 0;  // per row
    double fp32_products = 0;
  };

  bool int8_cache_ = false;
  Matrices layers_;
  Matrices output_;  // of the logits
  double kv_bytes_per_token_ = 0;
  double operations_per_pair_ = 0;
};

}  // namespace baton

#endif  // BATON_TESTS_BENCH_ROOFLINE_H_
