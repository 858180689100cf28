// Operators of one forward step with their work: floating-point operations and bytes. The list says
// what must be computed and moved at least, every operand once as if caches were infinite; how long
// that takes on some hardware is a later question.
// Fusion is that of today's engines: residual addition with the norm after it, the three
// projections of attention in one GEMM, gate and up in one GEMM, attention without a score matrix.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace prony::perfmodel {

enum class OperatorKind : uint8_t {
  kEmbed,              // gather of embedding rows
  kAttentionNorm,      // residual add + RMSNorm before attention
  kQkv,                // GEMM [tokens, hidden] x [hidden, (heads + 2 kv_heads) head_dim]
  kQkNorm,             // RMSNorm of each query and key head
  kRopeStore,          // rotation of queries and keys; keys and values go to the cache
  kAttentionPrefill,   // rows of several new tokens
  kAttentionDecode,    // rows of one new token
  kOutput,             // GEMM [tokens, heads * value dim] x [.., hidden]
  kPostAttentionNorm,  // Gemma-2
  kMlpNorm,            // residual add + RMSNorm before the MLP
  kGateUp,             // GEMM [tokens, hidden] x [hidden, 2 intermediate]
  kActivation,         // act(gate) * up
  kDown,               // GEMM [tokens, intermediate] x [intermediate, hidden]
  kPostMlpNorm,        // Gemma-2
  // Mixture of experts, instead of kGateUp..kDown.
  kRouter,        // GEMM [tokens, hidden] x [hidden, experts], scores and top-k
  kExpertGateUp,  // grouped GEMM over the experts that got tokens
  kExpertActivation,
  kExpertDown,
  kExpertCombine,  // weighted sum of the k results of a token
  kSharedGateUp,   // shared experts, as one dense MLP
  kSharedActivation,
  kSharedDown,
  // Latent attention, instead of kQkv.
  kMlaQueryDown,  // GEMM to q_lora_rank; absent without compression
  kMlaQueryNorm,
  kMlaQueryUp,  // GEMM to heads * head_dim
  kMlaKvDown,   // GEMM to kv_lora_rank + qk_rope_head_dim
  kMlaKvNorm,
  kMlaKvUp,         // prefill rows: keys and values of every cached position, from the latent
  kMlaAbsorbQuery,  // decode rows: queries into the latent space, one GEMM a head
  kMlaAbsorbValue,  // decode rows: results out of the latent space, one GEMM a head
  kFinalNorm,
  kHead,  // GEMM [rows that sample, hidden] x [hidden, vocab]
};
inline constexpr int kOperatorKinds = static_cast<int>(OperatorKind::kHead) + 1;

/// "qkv", "attention-decode", ...: stable, for records and tables.
std::string_view operator_name(OperatorKind kind);

inline constexpr int32_t kNoGroup = -1;

/// Work of one operator in ONE layer; `count` layers do the same.
struct Operator {
  OperatorKind kind = OperatorKind::kEmbed;
  int32_t group = kNoGroup;  // index into StepModel::groups(); kNoGroup outside the layers
  int32_t count = 1;         // layers
  // GEMMs only, 0 otherwise: `batch` independent products [m, k] x [k, n]. For experts, batch is
  // the expected number of experts that got tokens and m the mean of their rows, so fractional.
  double m = 0, n = 0, k = 0, batch = 0;
  double flops = 0;             // matrix multiply-adds, 2 each; GEMMs and attention only
  double vector_flops = 0;      // everything else; exp, tanh, division and root count as one
  double weight_bytes = 0;      // read
  double activation_bytes = 0;  // read and written
  double kv_read_bytes = 0;
  double kv_write_bytes = 0;
  double bytes() const { return weight_bytes + activation_bytes + kv_read_bytes + kv_write_bytes; }
};

/// Sums over operators, times their layers.
struct StepTotals {
  double flops = 0, vector_flops = 0;
  double weight_bytes = 0, activation_bytes = 0, kv_read_bytes = 0, kv_write_bytes = 0;
  double bytes() const { return weight_bytes + activation_bytes + kv_read_bytes + kv_write_bytes; }
};
StepTotals totals(std::span<const Operator> operators);

// Vector operations per element, by the formulas in the comments.
inline constexpr double kNormOps = 4;      // square, accumulate, scale, weight
inline constexpr double kResidualOps = 1;  // the addition fused with a norm
inline constexpr double kRopeOps = 3;      // two products and a sum per rotated element
inline constexpr double kSoftmaxOps = 5;   // per score: scale, maximum, subtract, exp, accumulate
inline constexpr double kSoftcapOps = 3;   // divide, tanh, multiply
inline constexpr double kSiluMulOps = 4;   // exp, add, divide, multiply by up
inline constexpr double kGeluTanhOps = 9;  // x(1 + c x^2): 4, tanh 1, 0.5 x (1 + t): 3, by up 1
inline constexpr double kClampedSwigluOps = 8;  // three clamps, alpha, sigmoid as silu, +1
inline constexpr double kScoreOps = 5;          // router: softmax or sigmoid with selection
inline constexpr double kCombineOps = 2;        // multiply, accumulate

}  // namespace prony::perfmodel
