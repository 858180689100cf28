// Lanes: what the kernel templates of this folder ask of a type V, one per instruction set, that
// stands for 16 floats. The three V's live in unnamed namespaces of kernels_{generic,avx2,avx512}
// .cpp, so every instantiation is private to a source compiled for that instruction set: a shared
// inline function could be merged by the linker into its AVX-512 copy and crash older processors.
// For the same reason these templates call no inline function of other headers.
//
//   F                             16 floats, lane 0 first
//   zero() set1(x) load(p) store(p, f)
//   load_n(p, n) store_n(p, f, n) the first n lanes, n clamped to [0, 16]; the others load as 0
//   load_bf16(p) store_bf16(p, f) store_bf16_n(p, f, n)    rounding to nearest even
//   load_pairs(p, even, odd)      32 bf16: even gets elements 0, 2, ..., odd gets 1, 3, ...
//   broadcast_pair(p, even, odd)  2 bf16, each in all lanes
//   store_low_bytes(p, f)         the lowest byte of every lane's bits, 16 int8
//   fma(a, b, c) = a b + c, fms(a, b, c) = a b - c         rounded once
//   add sub mul div
//   max(a, b) = a > b ? a : b, min(a, b) = a < b ? a : b    so b if either is a NaN
//   keep(f, n, other)             lanes below n of f, the rest of other; n clamped
//   less(a, b, x, y)              a < b ? x : y, lane by lane; y if either is a NaN
//   round_bf16(f)
//   pow2_halves(t, a, b)          t = 1.5 2^23 + n  ->  a b = 2^n with a, b normal, |n| <= 250
//   leave()                       makes the caller's SSE code fast again (vzeroupper)
//   reduce_add(f) reduce_max(f)   by halving: lane i with lane i + 8, then + 4, + 2, + 1
//
// what int8 products ask for:
//   I, izero()                    16 sums of 32 bits, which wrap
//   Bytes4, broadcast4(p)         4 int8, ready for dot4 with every lane
//   dot4(sum, w, x)               lane i of sum + w[4 i + 0 .. 3] (unsigned) . x
//   to_float_less(sum, n)         sum - n as floats
//
// and the constants kPackedRows, kPackedVectors (matmul_packed_impl.hpp), kSmallRows, kRows,
// kVectors, kAttentionRows: how many accumulators fit its registers (see matmul_impl.hpp,
// attention_impl.hpp). Thread safety: stateless.
#pragma once
#include <cstddef>

// Unrolls the next loop fully (at most 16 turns): accumulator arrays must end up in registers. Not
// under AddressSanitizer, whose checks make a compiler work on the unrolled tiles for minutes.
#if defined(__clang__)
#if __has_feature(address_sanitizer)
#define PRONY_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define PRONY_UNROLL _Pragma("clang loop unroll(full)")
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PRONY_UNROLL
#else
#define PRONY_UNROLL _Pragma("GCC unroll 16")
#endif
#define PRONY_INLINE [[gnu::always_inline]] inline

namespace prony::kernels::cpu {

/// Registers of a tile: N vectors, or R rows of N vectors.
template <class V, int N>
using Row = typename V::F[static_cast<size_t>(N)];
template <class V, int R, int N>
using Tile = typename V::F[static_cast<size_t>(R)][static_cast<size_t>(N)];

}  // namespace prony::kernels::cpu
