// The kernels in AVX-512: 16 floats in one register.
#if !defined(__clang__)
// g++ 12 writes _mm512_max_ps with a vector that it leaves undefined on purpose, and warns of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include "prony/kernels/cpu/table_impl.hpp"
#include "prony/kernels/cpu/tables.hpp"

namespace prony::kernels::cpu {
namespace {

// 32 registers: 12 rows x 2 accumulators + 2 weights + broadcast and mask, or 5 x 4 in decode,
// where a bf16 load gives two weights.
struct Avx512Lanes {
  static constexpr int kSmallRows = 5, kRows = 12, kVectors = 2, kAttentionRows = 4;
  static constexpr int kPackedRows = 4, kPackedVectors = 2;
  using F = __m512;
  using I = __m512i;
  struct Bytes4 {
    __m512i even, odd;  // bytes 0 and 2, bytes 1 and 3, each as 16 bits
  };

  PRONY_INLINE static __mmask16 mask(int64_t n) {
    const auto count = static_cast<unsigned>(n < 0 ? 0 : n > 16 ? 16 : n);
    return static_cast<__mmask16>((1u << count) - 1u);
  }

  PRONY_INLINE static void leave() { _mm256_zeroupper(); }
  PRONY_INLINE static F zero() { return _mm512_setzero_ps(); }
  PRONY_INLINE static F set1(float x) { return _mm512_set1_ps(x); }
  PRONY_INLINE static F load(const float* p) { return _mm512_loadu_ps(p); }
  PRONY_INLINE static void store(float* p, F f) { _mm512_storeu_ps(p, f); }
  PRONY_INLINE static F load_n(const float* p, int64_t n) {
    return _mm512_maskz_loadu_ps(mask(n), p);
  }
  PRONY_INLINE static void store_n(float* p, F f, int64_t n) {
    _mm512_mask_storeu_ps(p, mask(n), f);
  }
  PRONY_INLINE static F load_bf16(const quant::Bf16* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  PRONY_INLINE static void load_pairs(const quant::Bf16* p, F& even, F& odd) {
    const __m512i pairs = _mm512_loadu_si512(p);
    even = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
    odd = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(~0xFFFF)));
  }
  PRONY_INLINE static int32_t four_bytes(const void* p) {
    int32_t word;
    __builtin_memcpy(&word, p, sizeof(word));
    return word;
  }
  PRONY_INLINE static void broadcast_pair(const quant::Bf16* p, F& even, F& odd) {
    const __m512i pair = _mm512_set1_epi32(four_bytes(p));
    even = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
    odd = _mm512_castsi512_ps(_mm512_and_si512(pair, _mm512_set1_epi32(~0xFFFF)));
  }
  PRONY_INLINE static void store_low_bytes(int8_t* p, F f) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_castps_si512(f)));
  }
  PRONY_INLINE static I izero() { return _mm512_setzero_si512(); }
  // Sign-extended by shifts inside 16 bits: byte 0 up and down again, byte 1 down.
  PRONY_INLINE static Bytes4 broadcast4(const int8_t* p) {
    const __m512i bytes = _mm512_set1_epi32(four_bytes(p));
    return {_mm512_srai_epi16(_mm512_slli_epi16(bytes, 8), 8), _mm512_srai_epi16(bytes, 8)};
  }
  PRONY_INLINE static I dot4(I sum, const uint8_t* w, Bytes4 x) {
    const __m512i bytes = _mm512_loadu_si512(w);
    const __m512i even = _mm512_and_si512(bytes, _mm512_set1_epi16(0xFF));
    const __m512i odd = _mm512_srli_epi16(bytes, 8);
    return _mm512_add_epi32(
        sum, _mm512_add_epi32(_mm512_madd_epi16(even, x.even), _mm512_madd_epi16(odd, x.odd)));
  }
  PRONY_INLINE static F to_float_less(I sum, uint32_t less) {
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, _mm512_set1_epi32(static_cast<int32_t>(less))));
  }
  // The upper half holds the rounded bf16, the lower half is 0 (quant::to_bf16, 16 at a time).
  // vcvtneps2bf16 would flush subnormals, so it is not used.
  PRONY_INLINE static __m512i rounded(F f) {
    const __m512i bits = _mm512_castps_si512(f);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(f, f, _CMP_UNORD_Q);
    return _mm512_and_si512(_mm512_set1_epi32(~0xFFFF),
                            _mm512_mask_blend_epi32(is_nan, sum, quiet));
  }
  PRONY_INLINE static F round_bf16(F f) { return _mm512_castsi512_ps(rounded(f)); }
  PRONY_INLINE static void store_bf16_n(quant::Bf16* p, F f, int64_t n) {
    const __m256i half = _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded(f), 16));
    _mm256_mask_storeu_epi16(p, mask(n), half);
  }

  PRONY_INLINE static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  PRONY_INLINE static F fms(F a, F b, F c) { return _mm512_fmsub_ps(a, b, c); }
  PRONY_INLINE static F add(F a, F b) { return _mm512_add_ps(a, b); }
  PRONY_INLINE static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  PRONY_INLINE static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  PRONY_INLINE static F div(F a, F b) { return _mm512_div_ps(a, b); }
  PRONY_INLINE static F max(F a, F b) { return _mm512_max_ps(a, b); }
  PRONY_INLINE static F min(F a, F b) { return _mm512_min_ps(a, b); }
  PRONY_INLINE static F keep(F f, int64_t n, F other) {
    return _mm512_mask_blend_ps(mask(n), other, f);
  }
  PRONY_INLINE static F less(F a, F b, F x, F y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
  }
  PRONY_INLINE static void pow2_halves(F t, F& a, F& b) {
    const __m512i n = _mm512_sub_epi32(_mm512_castps_si512(t), _mm512_set1_epi32(0x4B400000));
    const __m512i half = _mm512_srai_epi32(n, 1);
    const __m512i bias = _mm512_set1_epi32(127);
    a = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(half, bias), 23));
    b = _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_sub_epi32(n, half), bias), 23));
  }
  PRONY_INLINE static float reduce_add(F f) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(f), _mm512_extractf32x8_ps(f, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  PRONY_INLINE static float reduce_max(F f) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(f), _mm512_extractf32x8_ps(f, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
};

}  // namespace

constinit const Kernels kAvx512Kernels = make_kernels<Avx512Lanes>(Isa::kAvx512);

}  // namespace prony::kernels::cpu
