#ifndef BATON_KERNELS_API_NUMERICS_CLASS_H_
#define BATON_KERNELS_API_NUMERICS_CLASS_H_

#include <cstdint>
#include <string_view>

namespace baton::kernels {

// What every backend computes, bit for bit (kernels/README.md). Both are in the
// fingerprint of a model: KV of another class or revision is never mixed with
// this one's, and no attempt is continued there.
inline constexpr std::string_view kNumericsClass = "exact-v1";
// One more whenever a constant, formula or order of the class changes.
// 2: softmax to base 2.
inline constexpr uint32_t kNumericsRevision = 2;

}  // namespace baton::kernels

#endif  // BATON_KERNELS_API_NUMERICS_CLASS_H_
