// make_kernels<V>: the kernel table (kernels.hpp) of one Lanes type (lanes.hpp).
// Thread safety: constant data.
#pragma once
#include "prony/kernels/cpu/attention_impl.hpp"
#include "prony/kernels/cpu/elementwise_impl.hpp"
#include "prony/kernels/cpu/matmul_impl.hpp"
#include "prony/kernels/kernels.hpp"

namespace prony::kernels::cpu {

/// A kernel as the table calls it: V::leave() ends it. The compiler inserts vzeroupper by itself
/// only at -O2, and without it the caller's SSE code (the generic kernels, all of libm) was
/// measured 50 to 100 times slower.
template <class V, auto Kernel>
struct Entry;
template <class V, class Return, class... Args, Return (*Kernel)(Args...)>
struct Entry<V, Kernel> {
  static Return call(Args... args) {
    if constexpr (__is_same(Return, void)) {
      Kernel(args...);
      V::leave();
    } else {
      const Return result = Kernel(args...);
      V::leave();
      return result;
    }
  }
};

/// The table of V; constant-initialised, so that no start-up code uses V's instructions.
template <class V>
constexpr Kernels make_kernels(Isa isa) {
  return {.isa = isa,
          .matmul = &Entry<V, &matmul_kernel<V>>::call,
          .pack_rows = &Entry<V, &pack_rows_kernel<V>>::call,
          .rmsnorm = &Entry<V, &rmsnorm_kernel<V>>::call,
          .add = &Entry<V, &add_kernel<V>>::call,
          .silu_mul = &Entry<V, &silu_mul_kernel<V>>::call,
          .gelu_mul = &Entry<V, &gelu_mul_kernel<V>>::call,
          .softcap = &Entry<V, &softcap_kernel<V>>::call,
          .add_scaled = &Entry<V, &add_scaled_kernel<V>>::call,
          .rope = &Entry<V, &rope_kernel<V>>::call,
          .store_kv = &Entry<V, &store_kv_kernel<V>>::call,
          .attention = &Entry<V, &attention_kernel<V>>::call,
          .exp = &Entry<V, &exp_kernel<V>>::call,
          .largest = &Entry<V, &largest_kernel<V>>::call};
}

}  // namespace prony::kernels::cpu
