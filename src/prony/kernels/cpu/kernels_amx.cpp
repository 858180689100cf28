// The products of packed rows on AVX-512 VNNI and on AMX tiles; all else of these levels is
// AVX-512. VNNI needs one instruction where kernels_avx512.cpp needs five.
#if !defined(__clang__)
// g++ 12 writes _mm512_cvtepi32_ps with a vector that it leaves undefined on purpose, and warns.
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include "prony/kernels/cpu/matmul_amx_impl.hpp"
#include "prony/kernels/cpu/matmul_packed_impl.hpp"
#include "prony/kernels/cpu/tables.hpp"

namespace prony::kernels::cpu {
namespace {

// What int8_tile and amx_panels ask of their Lanes, and no more.
struct VnniLanes {
  static constexpr int kPackedRows = 12, kPackedVectors = 2;
  using F = __m512;
  using I = __m512i;
  using Bytes4 = __m512i;

  PRONY_INLINE static __mmask16 mask(int64_t n) {
    const auto count = static_cast<unsigned>(n < 0 ? 0 : n > 16 ? 16 : n);
    return static_cast<__mmask16>((1u << count) - 1u);
  }
  PRONY_INLINE static F set1(float x) { return _mm512_set1_ps(x); }
  PRONY_INLINE static F load(const float* p) { return _mm512_loadu_ps(p); }
  PRONY_INLINE static F load_n(const float* p, int64_t n) {
    return _mm512_maskz_loadu_ps(mask(n), p);
  }
  PRONY_INLINE static void store_n(float* p, F f, int64_t n) {
    _mm512_mask_storeu_ps(p, mask(n), f);
  }
  PRONY_INLINE static F add(F a, F b) { return _mm512_add_ps(a, b); }
  PRONY_INLINE static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  PRONY_INLINE static I izero() { return _mm512_setzero_si512(); }
  PRONY_INLINE static I iload_n(const void* p, int64_t n) {
    return _mm512_maskz_loadu_epi32(mask(n), p);
  }
  PRONY_INLINE static Bytes4 broadcast4(const int8_t* p) {
    int32_t word;
    __builtin_memcpy(&word, p, sizeof(word));
    return _mm512_set1_epi32(word);
  }
  PRONY_INLINE static I dot4(I sum, const uint8_t* w, Bytes4 x) {
    // Not the intrinsic: g++ 12 copies its sums about and runs out of registers for twelve rows.
    const __m512i weights = _mm512_loadu_si512(w);
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(weights), "v"(x));
    return sum;
  }
  PRONY_INLINE static F to_float_less(I sum, uint32_t less) {
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, _mm512_set1_epi32(static_cast<int32_t>(less))));
  }
};

// Own assembler instead of the intrinsics: g++ 12 lets _tile_loadconfig read 8 bytes of the 64 and
// drops the stores to the rest, and its tile loads do not order themselves after plain stores.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);
constexpr TileConfig kWholeTiles;

struct AmxTiles {
  template <int kTile>
  PRONY_INLINE static void load(const void* p, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  PRONY_INLINE static void store(void* p, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  PRONY_INLINE static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <bool kInt8, int kSum, int kX, int kW>
  PRONY_INLINE static void multiply() {
    if constexpr (kInt8) {  // signed rows, unsigned weights
      asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kW));
    } else {
      asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kW));
    }
  }
};

}  // namespace

void matmul_vnni(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end) {
  if (args.packed == nullptr || args.packed->dtype != Dtype::kI8) {
    kAvx512Kernels.matmul(args, panel_begin, panel_end);
    return;
  }
  matmul_packed_typed<VnniLanes, true>(args, panel_begin, panel_end);
  _mm256_zeroupper();
}

void matmul_amx(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end) {
  if (args.packed == nullptr || args.rows < kAmxLeastRows) {
    matmul_vnni(args, panel_begin, panel_end);
    return;
  }
  asm volatile("ldtilecfg %0" : : "m"(kWholeTiles));
  if (args.packed->dtype == Dtype::kI8) {
    amx_panels<AmxTiles, VnniLanes, true>(args, panel_begin, panel_end);
  } else {
    amx_panels<AmxTiles, VnniLanes, false>(args, panel_begin, panel_end);
  }
  asm volatile("tilerelease");
  _mm256_zeroupper();
}

}  // namespace prony::kernels::cpu
