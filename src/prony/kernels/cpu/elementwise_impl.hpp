// Elementwise operators and row norms over Lanes (lanes.hpp); contract in kernels.hpp.
// exp: x = n ln 2 + r with |r| <= ln 2 / 2, then 2^n (1 + r + r^2 p(r)); p is our Chebyshev fit of
// (exp(r) - 1 - r) / r^2 of degree 4, relative error of the whole 2^-26.5 before rounding.
// Thread safety: pure functions.
#pragma once
#include <cstdint>

#include "prony/kernels/cpu/lanes.hpp"
#include "prony/kernels/kernels.hpp"

namespace prony::kernels::cpu {

/// Every lane's exp: 0 below about -104, infinity above 88.8, NaN for NaN.
template <class V>
PRONY_INLINE typename V::F exp_lanes(typename V::F x) {
  using F = typename V::F;
  // Beyond these the result is 0 or infinity anyway; a NaN must stay, hence the order of arguments.
  x = V::min(V::set1(89.0f), V::max(V::set1(-104.0f), x));
  const F magic = V::set1(0x1.8p23f);  // adding it rounds to an integer in the low bits
  const F shifted = V::fma(x, V::set1(0x1.715476p0f), magic);
  const F n = V::sub(shifted, magic);
  F r = V::fma(n, V::set1(-0x1.62e43p-1f), x);  // ln 2, upper part
  r = V::fma(n, V::set1(0x1.05c61p-29f), r);    // the rest of it
  F p = V::fma(V::set1(0x1.6d117cp-10f), r, V::set1(0x1.120be2p-7f));
  p = V::fma(p, r, V::set1(0x1.555518p-5f));
  p = V::fma(p, r, V::set1(0x1.5554dcp-3f));
  p = V::fma(p, r, V::set1(0.5f));
  const F y = V::add(V::fma(V::mul(r, r), p, r), V::set1(1.0f));
  F scale_a, scale_b;  // 2^n may be subnormal or 2^128: two factors that are neither
  V::pow2_halves(shifted, scale_a, scale_b);
  return V::mul(V::mul(y, scale_a), scale_b);
}

/// Every lane's tanh, within 3 ulp; NaN for NaN. Below 0.625 a polynomial in x^2 (our own minimax
/// fit, relative error 4e-9), above it 1 - 2 / (exp(2 x) + 1), which cancels nothing there.
template <class V>
PRONY_INLINE typename V::F tanh_lanes(typename V::F x) {
  using F = typename V::F;
  const F one = V::set1(1.0f), zero = V::zero();
  const F size = V::max(x, V::sub(zero, x));
  const F z = V::mul(x, x);
  F p = V::fma(V::set1(-0x1.72eedcp-8f), z, V::set1(0x1.515cdep-6f));
  p = V::fma(p, z, V::set1(-0x1.b8153ep-5f));
  p = V::fma(p, z, V::set1(0x1.110580p-3f));
  p = V::fma(p, z, V::set1(-0x1.555524p-2f));
  const F small = V::fma(V::mul(p, z), x, x);
  const F large = V::sub(one, V::div(V::set1(2.0f), V::add(exp_lanes<V>(V::add(size, size)), one)));
  const F signed_large = V::less(x, zero, V::sub(zero, large), large);
  return V::less(size, V::set1(0.625f), small, signed_large);
}

template <class V>
void exp_kernel(const float* x, float* y, int64_t n, float shift, float factor) {
  const auto minus = V::set1(shift);
  const auto times = V::set1(factor);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const auto argument = V::mul(V::sub(V::load_n(x + i, count), minus), times);
    V::store_n(y + i, exp_lanes<V>(argument), count);
  }
}

template <class V>
void rmsnorm_kernel(const RmsNormArgs& args) {
  using F = typename V::F;
  const int64_t n = args.n;
  const int64_t whole = n / kLanes * kLanes;
  const int64_t rest = n - whole;
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * args.x_stride;
    float* y = args.y + row * args.y_stride;
    F squares = V::zero();
    for (int64_t i = 0; i < whole; i += kLanes) {
      const F v = V::load(x + i);
      squares = V::fma(v, v, squares);
    }
    if (rest > 0) {
      const F v = V::load_n(x + whole, rest);
      squares = V::fma(v, v, squares);
    }
    const float mean = V::reduce_add(squares) / static_cast<float>(n);
    const F inverse = V::set1(1.0f / __builtin_sqrtf(mean + args.epsilon));
    for (int64_t i = 0; i < n; i += kLanes) {
      const int64_t count = n - i < kLanes ? n - i : kLanes;
      F v = V::mul(V::load_n(x + i, count), inverse);
      if (args.round_to_bf16_before_weight) v = V::round_bf16(v);
      V::store_n(y + i, V::mul(v, V::load_n(args.weight + i, count)), count);
    }
  }
}

template <class V>
void add_kernel(float* x, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    V::store_n(x + i, V::add(V::load_n(x + i, count), V::load_n(y + i, count)), count);
  }
}

template <class V>
void silu_mul_kernel(const float* gate, const float* up, float* y, int64_t n) {
  const auto one = V::set1(1.0f);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const auto a = V::load_n(gate + i, count);
    const auto silu = V::div(a, V::add(one, exp_lanes<V>(V::sub(V::zero(), a))));
    V::store_n(y + i, V::mul(silu, V::load_n(up + i, count)), count);
  }
}

template <class V>
void gelu_mul_kernel(const float* gate, const float* up, float* y, int64_t n) {
  const auto one = V::set1(1.0f), half = V::set1(0.5f);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const auto a = V::load_n(gate + i, count);
    const auto cubic = V::fma(V::mul(V::set1(0.044715f), V::mul(a, a)), a, a);
    const auto t = tanh_lanes<V>(V::mul(V::set1(0x1.988454p-1f), cubic));  // sqrt(2 / pi)
    const auto gelu = V::mul(V::mul(half, a), V::add(one, t));
    V::store_n(y + i, V::mul(gelu, V::load_n(up + i, count)), count);
  }
}

template <class V>
void softcap_kernel(float* x, int64_t n, float cap) {
  const auto most = V::set1(cap);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const auto t = tanh_lanes<V>(V::div(V::load_n(x + i, count), most));
    V::store_n(x + i, V::mul(most, t), count);
  }
}

template <class V>
void add_scaled_kernel(float* y, const float* x, int64_t n, float weight) {
  const auto w = V::set1(weight);
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    V::store_n(y + i, V::fma(w, V::load_n(x + i, count), V::load_n(y + i, count)), count);
  }
}

template <class V>
void rope_kernel(float* x, const float* cosine, const float* sine, int64_t half) {
  for (int64_t i = 0; i < half; i += kLanes) {
    const int64_t count = half - i < kLanes ? half - i : kLanes;
    const auto first = V::load_n(x + i, count);
    const auto second = V::load_n(x + half + i, count);
    const auto c = V::load_n(cosine + i, count);
    const auto s = V::load_n(sine + i, count);
    V::store_n(x + i, V::fms(first, c, V::mul(second, s)), count);
    V::store_n(x + half + i, V::fma(second, c, V::mul(first, s)), count);
  }
}

template <class V>
LargestResult largest_kernel(const float* x, int64_t n) {
  using F = typename V::F;
  LargestResult result;
  if (n <= 0) {
    result.finite = false;
    return result;
  }
  F most = V::set1(x[0]);
  F poison = V::zero();  // 0 x is 0 for every finite x and NaN for the others
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t count = n - i < kLanes ? n - i : kLanes;
    const F v = V::load_n(x + i, count);
    poison = V::fma(v, V::zero(), poison);
    most = V::max(V::keep(v, static_cast<int32_t>(count), most), most);
  }
  result.finite = V::reduce_add(poison) == 0.0f;
  if (!result.finite) return result;
  result.value = V::reduce_max(most);
  result.index = 0;
  while (x[result.index] != result.value) ++result.index;
  return result;
}

}  // namespace prony::kernels::cpu
