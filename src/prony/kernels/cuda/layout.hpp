// Where everything lies in device memory, planned on the host: the same arithmetic says how many
// bytes a model needs before anything is allocated, and gives the library its offsets. Sizes follow
// the limits, so no step allocates. Thread safety: pure functions. Source: DESIGN, engine notes 3.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "prony/kernels/cuda/abi.hpp"

namespace prony::kernels::cuda {

/// What bulk copies and 16-byte loads want, and what cudaMalloc gives.
inline constexpr int64_t kAlignBytes = 256;

/// Hands out offsets from front to back.
class OffsetPlan {
 public:
  int64_t take(int64_t bytes) {
    const int64_t at = used_;
    used_ += (bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
    return at;
  }
  int64_t used_bytes() const noexcept { return used_; }

 private:
  int64_t used_ = 0;
};

struct LayerOffsets {
  int64_t input_norm = 0, mlp_norm = 0, qkv = 0, qkv_bias = 0, q_norm = 0, k_norm = 0, o = 0,
          gate_up = 0, down = 0;
};

struct WeightOffsets {
  int64_t embedding = 0, head = 0, final_norm = 0, cosine = 0, sine = 0, total_bytes = 0;
  std::vector<LayerOffsets> layers;
};

/// Buffers of a step, in bytes from the start of the workspace.
struct BufferOffsets {
  int64_t hidden = 0;     // float [tokens][hidden]: the residual stream
  int64_t normed = 0;     // bf16 [tokens][hidden]
  int64_t qkv = 0;        // bf16 [tokens][(heads + 2 kv_heads) head_dim]
  int64_t attention = 0;  // bf16 [tokens][heads head_dim]
  int64_t gate_up = 0;    // bf16 [tokens][2 intermediate]
  int64_t inner = 0;      // bf16 [tokens][intermediate]
  int64_t last = 0;       // bf16 [sequences][hidden]
  int64_t logits = 0;     // float [sequences][vocab]
  int64_t partial = 0;    // float [(sequence, head, split)][head_dim + 2]
  int64_t tickets = 0;    // int [sequences][kv_heads]
  int64_t results = 0;    // int, float, int [sequences]
  int64_t batch = 0;      // int [batch_words]
  int64_t gemm = 0;       // scratch of the matrix library
  int64_t total_bytes = 0;
  int64_t batch_words = 0;
};

inline constexpr int64_t kGemmScratchBytes = int64_t{32} << 20;
/// Two blocks of decode attention fit a multiprocessor of 132: enough for all of them at once.
inline constexpr int32_t kDecodeBlocksLeast = 256;
/// Up to here a sequence is cut for balance between lengths, into no more than kBalanceSplits.
inline constexpr int32_t kDecodeBlocksWanted = 1024;
inline constexpr int32_t kBalanceSplits = 2;
inline constexpr int32_t kMaxSplits = 32;
/// Query tokens of one block of the prefill attention.
inline constexpr int32_t kQueryTile = 128;

/// Parts into which the context of each of `rows` sequences is cut in decode attention: all
/// multiprocessors have work; beyond that, joining the parts would cost more than it balances.
constexpr int32_t decode_splits(int32_t rows, int32_t kv_heads) {
  const int32_t blocks = std::max(1, rows * kv_heads);
  const auto parts = [&](int32_t wanted) { return (wanted + blocks - 1) / blocks; };
  const int32_t balanced = std::min(kBalanceSplits, parts(kDecodeBlocksWanted));
  return std::clamp(std::max(parts(kDecodeBlocksLeast), balanced), 1, kMaxSplits);
}

/// Rows of the graph that runs a decode step of `rows` sequences: powers of two up to 8, then
/// multiples of 8, so that few graphs serve all and little is padded.
constexpr int32_t decode_bucket(int32_t rows) {
  int32_t bucket = 1;
  while (bucket < rows && bucket < 8) bucket *= 2;
  return bucket >= rows ? bucket : (rows + 7) / 8 * 8;
}

inline WeightOffsets plan_weights(const ModelShape& shape, int32_t max_context) {
  WeightOffsets at;
  OffsetPlan plan;
  const int64_t hidden = shape.hidden, dim = shape.head_dim;
  const int64_t qkv = (int64_t{shape.heads} + 2 * shape.kv_heads) * dim;
  constexpr int64_t kBf16 = 2, kF32 = 4;
  at.embedding = plan.take(shape.vocab * hidden * kBf16);
  at.head = shape.tied_embeddings ? at.embedding : plan.take(shape.vocab * hidden * kBf16);
  at.final_norm = plan.take(hidden * kF32);
  at.cosine = plan.take(max_context * dim / 2 * kF32);
  at.sine = plan.take(max_context * dim / 2 * kF32);
  for (int32_t i = 0; i < shape.layers; ++i) {
    LayerOffsets& layer = at.layers.emplace_back();
    layer.input_norm = plan.take(hidden * kF32);
    layer.mlp_norm = plan.take(hidden * kF32);
    layer.qkv = plan.take(qkv * hidden * kBf16);
    layer.qkv_bias = plan.take(shape.qkv_bias ? qkv * kF32 : 0);
    layer.q_norm = plan.take(shape.qk_norm ? dim * kF32 : 0);
    layer.k_norm = plan.take(shape.qk_norm ? dim * kF32 : 0);
    layer.o = plan.take(hidden * shape.heads * dim * kBf16);
    layer.gate_up = plan.take(2 * int64_t{shape.intermediate} * hidden * kBf16);
    layer.down = plan.take(hidden * shape.intermediate * kBf16);
  }
  at.total_bytes = plan.used_bytes();
  return at;
}

/// Bytes of one page: 16 tokens of every layer.
inline int64_t page_bytes(const ModelShape& shape) {
  return int64_t{shape.layers} * shape.kv_heads * 2 * kPageTokens * shape.head_dim * 2;
}

/// One page more than the scheduler has: rows that only pad a graph write there.
inline int64_t kv_bytes(const ModelShape& shape, const EngineLimits& limits) {
  return (int64_t{limits.block_count} + 1) * page_bytes(shape);
}

inline BufferOffsets plan_buffers(const ModelShape& shape, const EngineLimits& limits) {
  BufferOffsets at;
  OffsetPlan plan;
  const int64_t rows = decode_bucket(limits.max_sequences);
  const int64_t tokens = std::max<int64_t>(limits.max_tokens, rows);
  const int64_t q = int64_t{shape.heads} * shape.head_dim;
  const int64_t qkv = q + 2 * int64_t{shape.kv_heads} * shape.head_dim;
  at.hidden = plan.take(tokens * shape.hidden * 4);
  at.normed = plan.take(tokens * shape.hidden * 2);
  at.qkv = plan.take(tokens * qkv * 2);
  at.attention = plan.take(tokens * q * 2);
  at.gate_up = plan.take(tokens * 2 * shape.intermediate * 2);
  at.inner = plan.take(tokens * shape.intermediate * 2);
  at.last = plan.take(rows * shape.hidden * 2);
  at.logits = plan.take(rows * shape.vocab * 4);
  // rows * kv_heads * decode_splits(rows) is at most what is wanted and one more for each.
  const int64_t pieces = kDecodeBlocksWanted + rows * shape.kv_heads;
  at.partial = plan.take(pieces * (shape.heads / shape.kv_heads) * (shape.head_dim + 2) * 4);
  at.tickets = plan.take(rows * shape.kv_heads * 4);
  at.results = plan.take(rows * 3 * 4);
  const int64_t blocks = (limits.max_context + kPageTokens - 1) / kPageTokens;
  const int64_t tiles = tokens / kQueryTile + rows;
  at.batch_words = 3 * tokens + 6 * rows + 2 * tiles + rows * blocks + 1;
  at.batch = plan.take(at.batch_words * 4);
  at.gemm = plan.take(kGemmScratchBytes);
  at.total_bytes = plan.used_bytes();
  return at;
}

}  // namespace prony::kernels::cuda
