// The kernels in plain C++: 16 floats as an array. Slow (fma may be a library call) and right; the
// level of last resort, and the one the others are compared with.
#include "prony/kernels/cpu/table_impl.hpp"
#include "prony/kernels/cpu/tables.hpp"

namespace prony::kernels::cpu {
namespace {

struct GenericLanes {
  static constexpr int kSmallRows = 1, kRows = 4, kVectors = 1, kAttentionRows = 1;
  static constexpr int kPackedRows = 1, kPackedVectors = 1;
  static constexpr int kCount = 16;
  struct F {
    float lane[kCount];
  };
  struct I {
    uint32_t lane[kCount];  // unsigned: sums may wrap on the way
  };
  struct Bytes4 {
    int8_t byte[4];
  };

  static int64_t clamp(int64_t n) { return n < 0 ? 0 : n > kCount ? kCount : n; }
  template <class Function>
  PRONY_INLINE static F make(Function&& function) {
    F f;
    for (int i = 0; i < kCount; ++i) f.lane[i] = function(i);
    return f;
  }

  static void leave() {}
  static F zero() { return set1(0.0f); }
  static F set1(float x) {
    return make([&](int) { return x; });
  }
  static F load(const float* p) {
    return make([&](int i) { return p[i]; });
  }
  static F load_n(const float* p, int64_t n) {
    return make([&](int i) { return i < n ? p[i] : 0.0f; });
  }
  static void store(float* p, const F& f) { store_n(p, f, kCount); }
  static void store_n(float* p, const F& f, int64_t n) {
    for (int64_t i = 0; i < clamp(n); ++i) p[i] = f.lane[i];
  }
  static F load_bf16(const quant::Bf16* p) {
    return make([&](int i) { return quant::to_float(p[i]); });
  }
  static void load_pairs(const quant::Bf16* p, F& even, F& odd) {
    even = make([&](int i) { return quant::to_float(p[2 * i]); });
    odd = make([&](int i) { return quant::to_float(p[2 * i + 1]); });
  }
  static void broadcast_pair(const quant::Bf16* p, F& even, F& odd) {
    even = set1(quant::to_float(p[0]));
    odd = set1(quant::to_float(p[1]));
  }
  static void store_low_bytes(int8_t* p, const F& f) {
    for (int i = 0; i < kCount; ++i) {
      p[i] = static_cast<int8_t>(__builtin_bit_cast(uint32_t, f.lane[i]) & 0xFF);
    }
  }
  static I izero() { return {}; }
  static Bytes4 broadcast4(const int8_t* p) { return {{p[0], p[1], p[2], p[3]}}; }
  static I dot4(I sum, const uint8_t* w, Bytes4 x) {
    for (int i = 0; i < kCount; ++i) {
      for (int j = 0; j < 4; ++j) {
        sum.lane[i] += static_cast<uint32_t>(int{w[4 * i + j]} * int{x.byte[j]});
      }
    }
    return sum;
  }
  static F to_float_less(const I& sum, uint32_t less) {
    return make(
        [&](int i) { return static_cast<float>(static_cast<int32_t>(sum.lane[i] - less)); });
  }
  static void store_bf16_n(quant::Bf16* p, const F& f, int64_t n) {
    for (int64_t i = 0; i < clamp(n); ++i) p[i] = quant::to_bf16(f.lane[i]);
  }

  static F fma(const F& a, const F& b, const F& c) {
    return make([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
  }
  static F fms(const F& a, const F& b, const F& c) {
    return make([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], -c.lane[i]); });
  }
  static F add(const F& a, const F& b) {
    return make([&](int i) { return a.lane[i] + b.lane[i]; });
  }
  static F sub(const F& a, const F& b) {
    return make([&](int i) { return a.lane[i] - b.lane[i]; });
  }
  static F mul(const F& a, const F& b) {
    return make([&](int i) { return a.lane[i] * b.lane[i]; });
  }
  static F div(const F& a, const F& b) {
    return make([&](int i) { return a.lane[i] / b.lane[i]; });
  }
  static F max(const F& a, const F& b) {
    return make([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static F min(const F& a, const F& b) {
    return make([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
  }
  static F keep(const F& f, int64_t n, const F& other) {
    return make([&](int i) { return i < n ? f.lane[i] : other.lane[i]; });
  }
  static F less(const F& a, const F& b, const F& x, const F& y) {
    return make([&](int i) { return a.lane[i] < b.lane[i] ? x.lane[i] : y.lane[i]; });
  }
  static F round_bf16(const F& f) {
    return make([&](int i) { return quant::round_to_bf16(f.lane[i]); });
  }
  static float power_of_two(int exponent) {
    return __builtin_bit_cast(float, (exponent + 127) << 23);
  }
  static void pow2_halves(const F& t, F& a, F& b) {
    for (int i = 0; i < kCount; ++i) {
      // A NaN carries no number: whatever this gives, NaN times it stays NaN.
      const int n = static_cast<int>(__builtin_bit_cast(uint32_t, t.lane[i]) - 0x4B400000u);
      const int half = n >= -250 && n <= 250 ? n >> 1 : 0;
      a.lane[i] = power_of_two(half);
      b.lane[i] = power_of_two(n >= -250 && n <= 250 ? n - half : 0);
    }
  }
  template <class Function>
  PRONY_INLINE static float reduce(F f, Function&& function) {
    for (int width = kCount / 2; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) f.lane[i] = function(f.lane[i], f.lane[i + width]);
    }
    return f.lane[0];
  }
  static float reduce_add(const F& f) {
    return reduce(f, [](float a, float b) { return a + b; });
  }
  static float reduce_max(const F& f) {
    return reduce(f, [](float a, float b) { return a > b ? a : b; });
  }
};

}  // namespace

constinit const Kernels kGenericKernels = make_kernels<GenericLanes>(Isa::kGeneric);

}  // namespace prony::kernels::cpu
