#ifndef BATON_KERNELS_CPU_SIMD_AMX_TILES_INL_H_
#define BATON_KERNELS_CPU_SIMD_AMX_TILES_INL_H_

#include <cstdint>

// The tiles of amx_linear-inl.h in hardware. Inline assembly: GCC 12's
// intrinsics name no memory operand, so that stores before them may be lost.
namespace baton::kernels::cpu::BATON_ISA {

// What ldtilecfg reads.
struct TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfiguration) == 64);

class AmxTiles {
 public:
  explicit AmxTiles(int depth) {
    TileConfiguration configuration;
    for (int tile = 0; tile < 8; ++tile) {
      const bool activations = tile == 4 || tile == 5;
      const bool codes = tile >= 6;
      configuration.row_bytes[tile] =
          static_cast<uint16_t>(activations ? depth : 64);
      configuration.rows[tile] = static_cast<uint8_t>(codes ? depth / 4 : 16);
    }
    asm volatile("ldtilecfg %0" : : "m"(configuration));
  }
  ~AmxTiles() { asm volatile("tilerelease" : : : "memory"); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  // Tile kSlot holds the products; tiles 4 and 5 activations, 6 and 7 codes.
  template <int kSlot>
  void Multiply(const int8_t* a, int64_t a_stride, const int8_t* b,
                int32_t* c) const {
    asm volatile(
        "tilezero %%tmm%c[out]\n\t"
        "tileloadd (%[a],%[a_stride]), %%tmm%c[left]\n\t"
        "tileloadd (%[b],%[b_stride]), %%tmm%c[right]\n\t"
        "tdpbssd %%tmm%c[right], %%tmm%c[left], %%tmm%c[out]\n\t"
        "tilestored %%tmm%c[out], (%[c],%[b_stride])"
        :
        : [a] "r"(a), [a_stride] "r"(a_stride), [b] "r"(b),
          [b_stride] "r"(int64_t{64}), [c] "r"(c), [out] "i"(kSlot),
          [left] "i"(4 + kSlot % 2), [right] "i"(6 + kSlot % 2)
        : "memory");
  }
};

}  // namespace baton::kernels::cpu::BATON_ISA

#endif  // BATON_KERNELS_CPU_SIMD_AMX_TILES_INL_H_
