// The kernels in AVX2 and FMA: 16 floats in two registers.
#include <immintrin.h>

#include "prony/kernels/cpu/table_impl.hpp"
#include "prony/kernels/cpu/tables.hpp"

namespace prony::kernels::cpu {
namespace {

// 16 registers: 6 rows x 2 accumulators + 2 weights + 1 broadcast; one row x 8 in decode.
struct Avx2Lanes {
  static constexpr int kSmallRows = 1, kRows = 6, kVectors = 1, kAttentionRows = 1;
  static constexpr int kPackedRows = 1, kPackedVectors = 1;
  struct F {
    __m256 low, high;
  };
  struct I {
    __m256i low, high;
  };
  struct Bytes4 {
    __m256i even, odd;  // bytes 0 and 2, bytes 1 and 3, each as 16 bits
  };

  PRONY_INLINE static __m256i mask8(int64_t n) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const int count = static_cast<int>(n < 0 ? 0 : n > 8 ? 8 : n);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), index);
  }

  PRONY_INLINE static void leave() { _mm256_zeroupper(); }
  PRONY_INLINE static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  PRONY_INLINE static F set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  PRONY_INLINE static F load(const float* p) {
    return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
  }
  PRONY_INLINE static void store(float* p, F f) {
    _mm256_storeu_ps(p, f.low);
    _mm256_storeu_ps(p + 8, f.high);
  }
  PRONY_INLINE static F load_n(const float* p, int64_t n) {
    return {_mm256_maskload_ps(p, mask8(n)), _mm256_maskload_ps(p + 8, mask8(n - 8))};
  }
  PRONY_INLINE static void store_n(float* p, F f, int64_t n) {
    _mm256_maskstore_ps(p, mask8(n), f.low);
    _mm256_maskstore_ps(p + 8, mask8(n - 8), f.high);
  }
  PRONY_INLINE static __m256 widen(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  PRONY_INLINE static F load_bf16(const quant::Bf16* p) {
    const auto* bits = reinterpret_cast<const __m128i*>(p);
    return {widen(_mm_loadu_si128(bits)), widen(_mm_loadu_si128(bits + 1))};
  }
  PRONY_INLINE static void split(__m256i pair, __m256& even, __m256& odd) {
    even = _mm256_castsi256_ps(_mm256_slli_epi32(pair, 16));
    odd = _mm256_castsi256_ps(_mm256_and_si256(pair, _mm256_set1_epi32(~0xFFFF)));
  }
  PRONY_INLINE static void load_pairs(const quant::Bf16* p, F& even, F& odd) {
    const auto* pairs = reinterpret_cast<const __m256i*>(p);
    split(_mm256_loadu_si256(pairs), even.low, odd.low);
    split(_mm256_loadu_si256(pairs + 1), even.high, odd.high);
  }
  PRONY_INLINE static int32_t four_bytes(const void* p) {
    int32_t word;
    __builtin_memcpy(&word, p, sizeof(word));
    return word;
  }
  PRONY_INLINE static void broadcast_pair(const quant::Bf16* p, F& even, F& odd) {
    const __m256i pair = _mm256_set1_epi32(four_bytes(p));
    split(pair, even.low, odd.low);
    even.high = even.low;
    odd.high = odd.low;
  }
  PRONY_INLINE static void store_low_bytes(int8_t* p, F f) {
    alignas(32) int32_t bits[kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(bits), _mm256_castps_si256(f.low));
    _mm256_store_si256(reinterpret_cast<__m256i*>(bits + 8), _mm256_castps_si256(f.high));
    for (int i = 0; i < kLanes; ++i) p[i] = static_cast<int8_t>(bits[i] & 0xFF);
  }
  PRONY_INLINE static I izero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  // Sign-extended by shifts inside 16 bits: byte 0 up and down again, byte 1 down.
  PRONY_INLINE static Bytes4 broadcast4(const int8_t* p) {
    const __m256i bytes = _mm256_set1_epi32(four_bytes(p));
    return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)};
  }
  PRONY_INLINE static __m256i dot4_8(__m256i sum, const uint8_t* w, Bytes4 x) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w));
    const __m256i even = _mm256_and_si256(bytes, _mm256_set1_epi16(0xFF));
    const __m256i odd = _mm256_srli_epi16(bytes, 8);
    return _mm256_add_epi32(
        sum, _mm256_add_epi32(_mm256_madd_epi16(even, x.even), _mm256_madd_epi16(odd, x.odd)));
  }
  PRONY_INLINE static I dot4(I sum, const uint8_t* w, Bytes4 x) {
    return {dot4_8(sum.low, w, x), dot4_8(sum.high, w + 32, x)};
  }
  PRONY_INLINE static F to_float_less(I sum, uint32_t less) {
    const __m256i minus = _mm256_set1_epi32(static_cast<int32_t>(less));
    return {_mm256_cvtepi32_ps(_mm256_sub_epi32(sum.low, minus)),
            _mm256_cvtepi32_ps(_mm256_sub_epi32(sum.high, minus))};
  }
  // The upper half holds the rounded bf16, the lower half is 0 (quant::to_bf16, eight at a time).
  PRONY_INLINE static __m256i rounded(__m256 f) {
    const __m256i bits = _mm256_castps_si256(f);
    const __m256i upper = _mm256_set1_epi32(~0xFFFF);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256 is_nan = _mm256_cmp_ps(f, f, _CMP_UNORD_Q);
    return _mm256_and_si256(upper, _mm256_blendv_epi8(sum, quiet, _mm256_castps_si256(is_nan)));
  }
  PRONY_INLINE static F round_bf16(F f) {
    return {_mm256_castsi256_ps(rounded(f.low)), _mm256_castsi256_ps(rounded(f.high))};
  }
  PRONY_INLINE static void store_bf16_n(quant::Bf16* p, F f, int64_t n) {
    const __m256i packed = _mm256_packus_epi32(_mm256_srli_epi32(rounded(f.low), 16),
                                               _mm256_srli_epi32(rounded(f.high), 16));
    const __m256i ordered = _mm256_permute4x64_epi64(packed, 0xD8);
    if (n >= kLanes) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), ordered);
      return;
    }
    alignas(32) quant::Bf16 all[kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(all), ordered);
    for (int64_t i = 0; i < n; ++i) p[i].bits = all[i].bits;
  }

  PRONY_INLINE static F fma(F a, F b, F c) {
    return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
  }
  PRONY_INLINE static F fms(F a, F b, F c) {
    return {_mm256_fmsub_ps(a.low, b.low, c.low), _mm256_fmsub_ps(a.high, b.high, c.high)};
  }
  PRONY_INLINE static F add(F a, F b) {
    return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
  }
  PRONY_INLINE static F sub(F a, F b) {
    return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
  }
  PRONY_INLINE static F mul(F a, F b) {
    return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
  }
  PRONY_INLINE static F div(F a, F b) {
    return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
  }
  PRONY_INLINE static F max(F a, F b) {
    return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
  }
  PRONY_INLINE static F min(F a, F b) {
    return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
  }
  PRONY_INLINE static F keep(F f, int64_t n, F other) {
    return {_mm256_blendv_ps(other.low, f.low, _mm256_castsi256_ps(mask8(n))),
            _mm256_blendv_ps(other.high, f.high, _mm256_castsi256_ps(mask8(n - 8)))};
  }
  PRONY_INLINE static F less(F a, F b, F x, F y) {
    return {_mm256_blendv_ps(y.low, x.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
            _mm256_blendv_ps(y.high, x.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
  }
  PRONY_INLINE static void pow2_halves8(__m256 t, __m256& a, __m256& b) {
    const __m256i n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_set1_epi32(0x4B400000));
    const __m256i half = _mm256_srai_epi32(n, 1);
    const __m256i bias = _mm256_set1_epi32(127);
    a = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
    b = _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias), 23));
  }
  PRONY_INLINE static void pow2_halves(F t, F& a, F& b) {
    pow2_halves8(t.low, a.low, b.low);
    pow2_halves8(t.high, a.high, b.high);
  }
  PRONY_INLINE static float reduce_add(F f) {
    const __m256 eight = _mm256_add_ps(f.low, f.high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  PRONY_INLINE static float reduce_max(F f) {
    const __m256 eight = _mm256_max_ps(f.low, f.high);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
};

}  // namespace

constinit const Kernels kAvx2Kernels = make_kernels<Avx2Lanes>(Isa::kAvx2);

}  // namespace prony::kernels::cpu
