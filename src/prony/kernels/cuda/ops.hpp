// The CUDA kernels behind plain host functions: each enqueues on a stream and returns. Pointers are
// device memory; `bf16` is the 16-bit pattern. Shapes stand on the pointers, row-major. A launch
// that fails is found by cudaGetLastError, which the engine asks once a step.
// Contract: head_dim is 16, 32, 64 or 128; heads / kv_heads at most 16; hidden, intermediate and
// head_dim * heads are multiples of 8, hidden at most 16384 (checked by supported()).
// Thread safety: as the stream. The kernels' own notes are in the .cu files.
#pragma once
#include <cstdint>

#include "prony/kernels/cuda/abi.hpp"

namespace prony::kernels::cuda {

using Stream = void*;  // cudaStream_t

/// hidden[t] = embedding[tokens[t]]
void embed(const int32_t* tokens, const void* embedding /* bf16 [vocab][hidden] */, int32_t count,
           int32_t hidden, float* out /* [count][hidden] */, Stream stream);

/// y[i] = x[rows ? rows[i] : i] / rms * weight
void rms_norm(const float* x /* [..][hidden] */, const int32_t* rows, const float* weight,
              float epsilon, int32_t count, int32_t hidden, void* y /* bf16 [count][hidden] */,
              Stream stream);

struct RopeArguments {
  void* qkv = nullptr;                 // bf16 [count][(heads + 2 kv_heads) D]; queries in place
  const float* bias = nullptr;         // or null
  const float* q_norm = nullptr;       // [D] or null
  const float* k_norm = nullptr;       // [D] or null
  const float* cosine = nullptr;       // [positions][D / 2]
  const float* sine = nullptr;         // [positions][D / 2]
  const int32_t* positions = nullptr;  // [count]
  const int32_t* slots = nullptr;      // [count]
  void* pages = nullptr;               // of the layer: bf16 [page][kv_heads][2][16][D]
  int32_t count = 0, heads = 0, kv_heads = 0, head_dim = 0;
  float epsilon = 0;
};
/// Adds the bias, norms, rotates; queries stay, keys and values go to their pages.
void rope_and_store(const RopeArguments& arguments, Stream stream);

/// y[t][i] = silu(x[t][i]) * x[t][n + i]
void silu_multiply(const void* x /* bf16 [count][2 n] */, int32_t count, int32_t n,
                   void* y /* bf16 [count][n] */, Stream stream);

enum class Store {
  kBf16,      // y = x W^T, bf16
  kFloat,     // y = x W^T, float
  kAdd,       // y += x W^T, float
  kSiluPair,  // y[i] = silu(row i) * (row n/2 + i), rounded to bf16 between, bf16 [m][n / 2]
};
/// Rows of x up to which product_few() serves.
inline constexpr int32_t kFewRows = 2;
/// y = x W^T for 1 to kFewRows rows, at the rate of reading W.
void product_few(const void* x /* bf16 [m][k] */, const void* weight /* bf16 [n][k] */, int32_t m,
                 int32_t n, int32_t k, Store store, void* y, Stream stream);

struct AttentionArguments {
  const void* qkv = nullptr;    // bf16 [tokens][q_stride]; queries first
  const void* pages = nullptr;  // of the layer
  const int32_t* tables = nullptr;
  const int32_t* table_start = nullptr;  // [rows]
  const int32_t* kv_tokens = nullptr;    // [rows]
  void* out = nullptr;                   // bf16 [tokens][heads D]
  int32_t heads = 0, kv_heads = 0, head_dim = 0, q_stride = 0;
  float scale = 1;
};
/// Rows 0 .. rows - 1 have one query token each: token i is row i's.
void attention_decode(const AttentionArguments& arguments, int32_t rows, int32_t splits,
                      float* partial, int32_t* tickets, Stream stream);
/// Tiles of kQueryTile query tokens: [tiles] of (row, first token of the tile within the row).
void attention_prefill(const AttentionArguments& arguments, const int32_t* tiles, int32_t count,
                       const int32_t* row_start, const int32_t* row_tokens, Stream stream);

/// Largest logit of each row among ids below `n`, its log-probability, and whether all are finite.
void choose_greedy(const float* logits /* [count][stride] */, int32_t count, int32_t n,
                   int32_t stride, int32_t* tokens, float* logprobs, int32_t* finite,
                   Stream stream);

/// Once a process, before the first launch: what the kernels need beyond the defaults.
void prepare_kernels();

}  // namespace prony::kernels::cuda
