#ifndef BATON_KERNELS_CPU_ROPE_H_
#define BATON_KERNELS_CPU_ROPE_H_

namespace baton::kernels::cpu {

// Rotates the interleaved pairs of `heads` heads, head_dim apart, by the angles
// of one position: cos and sin are [pairs].
void RotateHeads(float* x, int heads, int head_dim, int pairs, const float* cos,
                 const float* sin);

}  // namespace baton::kernels::cpu

#endif  // BATON_KERNELS_CPU_ROPE_H_
