#include "kernels/cpu/rope.h"

#include <cmath>

namespace baton::kernels::cpu {
namespace {

void RotateHead(float* __restrict head, int pairs, const float* __restrict cos,
                const float* __restrict sin) {
  for (int i = 0; i < pairs; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = std::fma(a, cos[i], -(b * sin[i]));
    head[2 * i + 1] = std::fma(b, cos[i], a * sin[i]);
  }
}

}  // namespace

void RotateHeads(float* x, int heads, int head_dim, int pairs, const float* cos,
                 const float* sin) {
  for (int h = 0; h < heads; ++h) RotateHead(x + h * head_dim, pairs, cos, sin);
}

}  // namespace baton::kernels::cpu
