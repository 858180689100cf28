// Forward: one generic pass of a decoder over the rows of a step, driven by ModelSpec. Rows
// of different requests, decode and prefill alike, lie one after another in every buffer; by the
// kernels' contract (kernels.hpp) no row's result depends on another's or on how a prompt was cut.
// Arithmetic is fp32 throughout; with bf16 weights and KV cache those are rounded, activations only
// if ForwardOptions says so, and then where a product reads them. With int8 weights products read
// int8 rows (kernels::PackedRows).
// All keys and values of a layer are stored before any row attends, so a row may read blocks that
// another row of the same step fills (sched::PrefixSharing::kPlanned).
// Experts: tokens are gathered by expert, and each token adds its experts' answers in the order of
// their numbers, so company changes nothing here either.
// Memory is planned for the largest step and taken once; run() allocates nothing.
// Source: Touvron et al., "Llama 2", 2023, section 2.2 (norms before, SwiGLU, RoPE, GQA); Qwen2 and
// Qwen3 technical reports (QKV bias, QK norm); Gemma Team, "Gemma 2", 2024 (caps, windows, norms);
// Jiang et al., "Mixtral of experts", 2024; DeepSeek-AI, "DeepSeek-V2" and "-V3", 2024 (latent
// attention, shared experts, groups). Thread safety: one caller thread.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/engine/kv_store.hpp"
#include "prony/engine/model.hpp"
#include "prony/engine/operator_trace.hpp"
#include "prony/engine/rope_table.hpp"
#include "prony/kernels/kernels.hpp"
#include "prony/kernels/thread_pool.hpp"

namespace prony::engine {

/// Limits a Forward is planned for.
struct ForwardLimits {
  int32_t max_tokens = 0;   // of a step
  int32_t max_rows = 0;     // sequences of a step
  int32_t max_context = 0;  // positions
};

struct ForwardOptions {
  /// Products of bf16 weights read rows rounded to bf16, as AMX tiles need them.
  bool bf16_rows = false;
};

/// Consecutive tokens of one sequence.
struct ForwardRow {
  std::span<const int32_t> tokens;  // to compute
  int32_t first_position = 0;
  std::span<const int32_t> pages;  // of positions 16 i .. 16 i + 15
  bool wants_logits = false;       // of its last token
};

/// Sees what a pass computes; for tests and for measuring quality. Null costs one comparison.
class ForwardObserver {
 public:
  virtual ~ForwardObserver() = default;
  /// The residual stream after `layer` layers: 0 is the embedding. Row-major, `stride` floats
  /// between tokens; tokens in the order of the step.
  virtual void on_hidden(int32_t layer, const float* hidden /* [tokens][hidden] */, int64_t stride,
                         int64_t tokens) = 0;
};

class Forward {
 public:
  /// Bytes create() will take.
  static int64_t workspace_bytes(const catalog::ModelSpec& spec, const ForwardLimits& limits);

  /// `model`, `kv` and `pool` must outlive it. Error: kEnvironment if the memory cannot be had.
  static Result<Forward> create(const Model& model, const KvStore& kv,
                                const kernels::Kernels& kernels, kernels::ThreadPool& pool,
                                const ForwardLimits& limits, const ForwardOptions& options = {});

  /// Times every operator from now on; null: none. The caller tells it steps and rows.
  void set_trace(OperatorTrace* trace) { trace_ = trace; }

  /// One step. Requires the limits, valid tokens and pages (checked).
  void run(std::span<const ForwardRow> rows, ForwardObserver* observer = nullptr);

  /// Logits of the rows that wanted them in the last run(), by their order: [first, first + count)
  /// into the same places of logits(). Requires count <= kLogitRows (checked).
  void compute_logits(int32_t first, int32_t count);
  float* logits(int32_t row);  // [vocab] of the row-th of the last compute_logits(); a scratch
  static constexpr int32_t kLogitRows = 32;

 private:
  // Tokens of a prefill that one attention task takes: enough to use a page often once it is in
  // cache, few enough to balance threads.
  static constexpr int32_t kPieceTokens = 32;
  // Heads of a group that one attention task takes at least.
  static constexpr int64_t kTaskHeads = 8;
  // Tokens that one task of an elementwise operator takes.
  static constexpr int64_t kTokenGrain = 8;
  /// Query tokens of one row that one task attends with.
  struct Piece {
    int32_t row = 0;
    int32_t token_begin = 0, token_end = 0;  // within the row
    int64_t first = 0;                       // of the row, within the step
  };
  Forward(const catalog::ModelSpec& spec, const ForwardLimits& limits, kernels::Arena arena);
  void prepare(std::span<const ForwardRow> rows);
  void embed(std::span<const ForwardRow> rows);
  const kernels::PackedRows* pack(const float* x, int64_t x_stride, int64_t rows,
                                  const kernels::PackedMatrix& weight);
  void matmul(const float* x, int64_t x_stride, int64_t rows, const kernels::PackedMatrix& weight,
              const float* bias, float* y, int64_t y_stride);
  void norm(const float* x, int64_t x_stride, int64_t n, const float* weight, float* y,
            int64_t y_stride);
  void add_to_hidden(const float* out_norm, perfmodel::OperatorKind norm_kind,
                     perfmodel::OperatorKind add_kind);
  OperatorSpan timed(perfmodel::OperatorKind kind) const { return {trace_, kind, layer_}; }
  // forward_attention.cpp: normed_ to update_
  void attention(std::span<const ForwardRow> rows, int32_t index, const LayerWeights& layer);
  void project_and_store(const LayerWeights& layer, const kernels::KvLayout& kv);
  void project_and_store_latent(const MlaWeights& mla, const kernels::KvLayout& kv);
  void attend(std::span<const ForwardRow> rows, int32_t index, const kernels::KvLayout& kv,
              const float* q, int64_t q_stride, float* out, int64_t out_stride);
  void per_head(const float* x, int64_t x_stride, int64_t x_step,
                const std::vector<kernels::PackedMatrix>& weights, float* y, int64_t y_stride,
                int64_t y_step);
  // forward_mlp.cpp: normed_ to update_
  /// The operators that one MLP counts as.
  struct MlpKinds {
    perfmodel::OperatorKind gate_up, activation, down;
  };
  void mlp(const float* x, int64_t rows, const MlpWeights& mlp, float* y, const MlpKinds& kinds);
  void experts(const MoeWeights& moe);
  void route(const MoeWeights& moe);
  void choose(const float* scores, int64_t token, const float* bias);
  void add_shared(const MoeWeights& moe);
  void gather_last(std::span<const ForwardRow> rows);

  catalog::ModelSpec spec_;
  ForwardLimits limits_;
  ForwardOptions options_;
  kernels::Arena arena_;
  const Model* model_ = nullptr;
  const KvStore* kv_ = nullptr;
  const kernels::Kernels* kernels_ = nullptr;
  kernels::ThreadPool* pool_ = nullptr;

  RopeTable rope_;
  float attention_scale_ = 1;
  // Row strides in floats, and the buffers of the largest step.
  int64_t hidden_stride_, qkv_stride_, attention_stride_, gate_up_stride_, inner_stride_,
      vocab_stride_;
  float* hidden_;     // [max_tokens][hidden]
  float* normed_;     // [max_tokens][hidden]: what attention and MLP read
  float* update_;     // [max_tokens][hidden]: what they add to hidden_
  float* qkv_;        // [max_tokens][(heads + 2 kv_heads) head_dim]; latent: [heads head_dim]
  float* attention_;  // [max_tokens][heads head_dim, or v_head_dim]
  float* gate_up_;    // [max_tokens][2 intermediate]
  float* inner_;      // [max_tokens][intermediate]
  float* last_;       // [max_rows][hidden]: normed, of the rows that want logits
  float* logits_;     // [kLogitRows][vocab]
  kernels::PackedRows packed_;  // [max_tokens or kLogitRows][widest input of a product]
  // Latent attention only.
  int64_t q_rank_stride_ = 0, latent_stride_ = 0, q_latent_stride_ = 0, out_latent_stride_ = 0;
  float* q_rank_ = nullptr;      // [max_tokens][q_lora_rank]
  float* latent_ = nullptr;      // [max_tokens][kv_lora_rank + rope]: a key; its front is the value
  float* q_latent_ = nullptr;    // [max_tokens][heads][kv_lora_rank + rope]
  float* out_latent_ = nullptr;  // [max_tokens][heads][kv_lora_rank]
  // Experts only.
  int64_t router_stride_ = 0;
  float* router_ = nullptr;         // [max_tokens][experts]: scores
  float* gathered_ = nullptr;       // [max_tokens][hidden]: tokens of one expert
  float* answered_ = nullptr;       // [max_tokens][hidden]: its answers
  int32_t* chosen_ = nullptr;       // [max_tokens][experts_per_token], rising
  float* chosen_weight_ = nullptr;  // beside chosen_
  int32_t* expert_end_ = nullptr;   // [experts]: of its places in by_expert_
  int32_t* by_expert_ = nullptr;    // [max_tokens experts_per_token]: places in chosen_
  OperatorTrace* trace_ = nullptr;
  // Of the step being run.
  int32_t layer_ = -1;  // -1 outside the layers
  int64_t tokens_ = 0;
  int32_t wanting_ = 0;               // rows that want logits
  std::vector<int32_t> positions_;    // [tokens]
  std::vector<int32_t> token_pages_;  // [tokens] page of the token's own position
  std::vector<Piece> pieces_;
};

}  // namespace prony::engine
