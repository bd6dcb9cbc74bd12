#ifndef BATON_COMMON_WEIGHTS_NONFINITE_H_
#define BATON_COMMON_WEIGHTS_NONFINITE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "kernels/api/tensor.h"

namespace baton {

// Index of the first weight that is NaN or infinite, or whose block has such a
// scale or minimum; nullopt when there is none. `data` holds whole blocks.
std::optional<uint64_t> FindNonfinite(kernels::TensorType type,
                                      absl::Span<const std::byte> data);

}  // namespace baton

#endif  // BATON_COMMON_WEIGHTS_NONFINITE_H_
