// Kernels: the operators of one decoder step on the CPU, as a table of functions chosen once by
// instruction set. Weights are fp32, bf16 or int8, the KV cache fp32 or bf16; activations are fp32
// between the operators, and so is all arithmetic but the sums of int8 products.
//
// The numerical contract, which every level of Isa keeps, so that all give the same bits:
//  - an element of a matrix product with fp32 rows is one chain  acc = fma(x[k], w[k], acc),  k
//    ascending from 0, the bias added at the end: nothing depends on the number of rows, on
//    blocking or on threads;
//  - with bf16 rows (PackedRows) it is summed as AMX tiles do: for every 32 inputs one chain of fma
//    over the even and one over the odd ones, each from 0, then acc = acc + (even + odd). (Tiles
//    flush numbers below 2^-126 to zero, the other levels keep them: bits are equal down to there);
//  - with int8 rows the sum is an exact integer, the result float(sum) * row scale * output scale;
//  - a long sum (norm, softmax) is 16 partial sums, element i in lane i mod 16, added by halving
//    (8 + 8, 4 + 4, 2 + 2, 1 + 1);
//  - attention of a query walks the context in spans of 64 tokens counted from position 0, with a
//    running maximum; queries of a tile share loads and never values;
//  - exp is our own polynomial, division and square root are the exactly rounded ones.
// So chunking, batching, padding, preemption and a prefix hit cannot change a result.
//
// Strides (`x_stride`) are in elements between rows. Thread safety: functions are pure; calls that
// write different outputs may run at the same time.
#pragma once
#include <cstdint>

#include "prony/kernels/isa.hpp"
#include "prony/kernels/packed_matrix.hpp"
#include "prony/quant/bf16.hpp"

namespace prony::kernels {

/// Activations rounded for products in low precision: bf16 to nearest even, or int8 with a scale a
/// row (largest magnitude / 127; a row below 1e-30 is 0, one with a NaN or infinity gives NaNs).
/// Layout: tiles of 16 rows by 64 bytes of inputs, as AMX loads them, a tile in one piece: rows in
/// blocks of 16, inside a block tile by tile; inputs padded with zeros to whole tiles.
struct PackedRows {
  static constexpr int64_t kTileRows = 16, kRowBytes = 64, kTileBytes = kTileRows * kRowBytes;

  Dtype dtype = Dtype::kBf16;  // or kI8
  std::byte* data = nullptr;   // [ceil(rows/16)][block_bytes / 1024][16][64]
  int64_t block_bytes = 0;     // of 16 rows
  float* scale = nullptr;      // [rows]; int8 only
  int32_t* sum = nullptr;      // [rows] of the int8 values: weights are stored with 128 added

  static int64_t block_bytes_for(Dtype dtype, int64_t inputs) noexcept {
    return PackedMatrix::padded_inputs(dtype, inputs) * dtype_bytes(dtype) * kTileRows;
  }
  static int64_t size_bytes(Dtype dtype, int64_t rows, int64_t inputs) noexcept {
    return (rows + kTileRows - 1) / kTileRows * block_bytes_for(dtype, inputs);
  }
};

struct PackRowsArgs {
  const float* x = nullptr;  // [rows][inputs], x_stride
  int64_t x_stride = 0;
  int64_t rows = 0;
  int64_t inputs = 0;
  const PackedRows* to = nullptr;
  int64_t first = 0;  // row of `to` that x[0] goes to
};

/// y[m][n] = x[m][k] W[n][k]^T (+ bias[n]).
struct MatmulArgs {
  const float* x = nullptr;  // [rows][k], x_stride; unused with packed rows
  int64_t x_stride = 0;
  // The rows in the weight's dtype, bf16 or int8; null: x. Requires them for an int8 weight.
  const PackedRows* packed = nullptr;
  int64_t rows = 0;
  const PackedMatrix* weight = nullptr;  // [n][k]
  const float* bias = nullptr;           // [n] or null
  float* y = nullptr;                    // [rows][n], y_stride
  int64_t y_stride = 0;
};

/// y[m] = x[m] / sqrt(mean(x[m]^2) + epsilon) * weight. Source: Zhang & Sennrich, "Root mean square
/// layer normalization", NeurIPS 2019, equation 4.
struct RmsNormArgs {
  const float* x = nullptr;  // [rows][n], x_stride
  int64_t x_stride = 0;
  int64_t rows = 0;
  int64_t n = 0;
  const float* weight = nullptr;  // [n]
  float epsilon = 0;
  // As Hugging Face's Llama does in bf16: the normalised value is rounded before the weight.
  bool round_to_bf16_before_weight = false;
  float* y = nullptr;  // [rows][n], y_stride; may be x
  int64_t y_stride = 0;
};

/// Where the keys and values of one layer lie: pages of 16 tokens, a page of every layer together.
/// In a page and layer: keys [kv_heads][head_dim][16] (transposed: a vector holds one dimension of
/// 16 tokens), then values [kv_heads][16][value_stride]. Latent attention (MLA) is one kv head
/// whose values are narrower than its keys.
struct KvLayout {
  Dtype dtype = Dtype::kF32;
  std::byte* layer = nullptr;  // this layer's part of page 0
  int64_t page_bytes = 0;      // from a page to the next
  int32_t kv_heads = 0;
  int32_t head_dim = 0;      // of keys
  int32_t value_dim = 0;     // of values
  int64_t value_stride = 0;  // value_dim rounded up to 16

  int64_t key_elements() const noexcept { return int64_t{16} * kv_heads * head_dim; }
  int64_t value_elements() const noexcept { return int64_t{16} * kv_heads * value_stride; }
};

inline constexpr int32_t kPageTokens = 16;
inline constexpr int32_t kMaxValueDim = 512;  // accumulators of attention live on the stack

/// Writes key and value of one token into its page.
struct StoreKvArgs {
  const float* key = nullptr;    // [kv_heads][head_dim]
  const float* value = nullptr;  // [kv_heads][value_dim]
  const KvLayout* kv = nullptr;
  int32_t page = 0;
  int32_t slot = 0;  // token of the page, 0 to 15
};

/// Causal attention of `tokens` consecutive query tokens of one sequence over its pages:
/// out = softmax(cap(scale q K^T)) V for every head; head h reads kv head h / (heads / kv_heads).
/// Keys and values of all positions up to the last query's are stored already.
struct AttentionArgs {
  const float* q = nullptr;  // [tokens][heads][head_dim], q_stride between tokens
  int64_t q_stride = 0;
  float* out = nullptr;  // [tokens][heads][value_dim], out_stride between tokens
  int64_t out_stride = 0;
  int32_t tokens = 0;
  int32_t first_position = 0;      // of q[0]
  const int32_t* pages = nullptr;  // [positions / 16 + 1] page of 16 positions each
  const KvLayout* kv = nullptr;
  int32_t heads = 0;
  float scale = 1;
  int32_t window = 0;  // positions a query sees, itself included; 0: all before it
  float softcap = 0;   // cap(s) = softcap tanh(s / softcap); 0: none
};

struct LargestResult {
  int64_t index = -1;  // of the largest element, the lowest index on a tie; -1 if !finite
  float value = 0;
  bool finite = true;  // no NaN and no infinity anywhere
};

struct Kernels {
  Isa isa = Isa::kGeneric;

  /// Panels [panel_begin, panel_end) of the weight only: the unit that threads share.
  void (*matmul)(const MatmulArgs& args, int64_t panel_begin, int64_t panel_end);
  void (*pack_rows)(const PackRowsArgs& args);
  void (*rmsnorm)(const RmsNormArgs& args);
  /// x += y.
  void (*add)(float* x /* [n] */, const float* y /* [n] */, int64_t n);
  /// y = silu(gate) * up, silu(a) = a / (1 + exp(-a)). y may be gate or up.
  void (*silu_mul)(const float* gate /* [n] */, const float* up /* [n] */, float* y /* [n] */,
                   int64_t n);
  /// y = gelu(gate) * up, gelu(a) = a / 2 (1 + tanh(sqrt(2 / pi) (a + 0.044715 a^3))). y may be
  /// gate or up. Source: Hendrycks & Gimpel, "Gaussian error linear units", 2016, section 2.
  void (*gelu_mul)(const float* gate /* [n] */, const float* up /* [n] */, float* y /* [n] */,
                   int64_t n);
  /// x = cap tanh(x / cap). In place. Source: Gemma Team, "Gemma 2", 2024, section 2.
  void (*softcap)(float* x /* [n] */, int64_t n, float cap);
  /// y += weight x.
  void (*add_scaled)(float* y /* [n] */, const float* x /* [n] */, int64_t n, float weight);
  /// Rotates the pairs (x[i], x[i + half]) by the angle whose cosine and sine are given: the
  /// half-split layout of Hugging Face weights. In place.
  void (*rope)(float* x /* [2 half] */, const float* cosine /* [half] */,
               const float* sine /* [half] */, int64_t half);
  void (*store_kv)(const StoreKvArgs& args);
  /// Of the queries that read kv head `kv_head`, numbered token by token, [row_begin, row_end):
  /// row = token * (heads / kv_heads) + head within the group.
  void (*attention)(const AttentionArgs& args, int32_t kv_head, int64_t row_begin, int64_t row_end);
  /// y = exp((x - shift) * factor). y may be x. Error at most 2 ulp of the exact exp of the rounded
  /// argument; underflow is gradual.
  void (*exp)(const float* x /* [n] */, float* y /* [n] */, int64_t n, float shift, float factor);
  LargestResult (*largest)(const float* x /* [n] */, int64_t n);
};

/// Requires that the processor supports `isa` (checked).
const Kernels& kernels_for(Isa isa);

}  // namespace prony::kernels
