#include "prony/engine/forward.hpp"

#include <algorithm>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"

namespace prony::engine {

using perfmodel::OperatorKind;

namespace {

// Rows start on cache lines, and an odd number of lines apart: rows a power of two apart would
// fall into the same few cache sets, and a matrix product reads twelve of them at a time.
int64_t stride_of(int64_t elements) {
  const int64_t lines = kernels::round_up(elements, kernels::kLanes) / kernels::kLanes;
  return (lines % 2 == 0 ? lines + 1 : lines) * kernels::kLanes;
}

// Widest inner vector of any MLP of the model.
int64_t widest_mlp(const catalog::ModelSpec& spec) {
  if (!spec.moe) return spec.intermediate;
  const int64_t dense = spec.moe->dense_layers > 0 ? spec.intermediate : 0;
  return std::max({dense, int64_t{spec.moe->intermediate}, int64_t{spec.moe->shared_intermediate}});
}

// Inputs of the widest product of the model.
int64_t widest_input(const catalog::ModelSpec& spec) {
  const int64_t attention = int64_t{spec.heads} * (spec.mla ? spec.mla->v_head_dim : spec.head_dim);
  const int64_t rank = spec.mla ? spec.mla->q_lora_rank : 0;
  return std::max({int64_t{spec.hidden}, attention, rank, widest_mlp(spec)});
}

// Panels per task: all at once for one thread, else about four tasks a thread, in pairs because the
// kernel reads two panels together.
int64_t panel_grain(int64_t panels, int threads) {
  if (threads == 1) return std::max<int64_t>(panels, 1);
  return std::max<int64_t>(2, kernels::round_up(panels / (4 * threads), 2));
}

}  // namespace

Forward::Forward(const catalog::ModelSpec& spec, const ForwardLimits& limits, kernels::Arena arena)
    : spec_(spec),
      limits_(limits),
      arena_(std::move(arena)),
      rope_(spec.rope, spec.mla ? spec.mla->qk_rope_head_dim : spec.head_dim, limits.max_context,
            arena_),
      hidden_stride_(stride_of(spec.hidden)),
      qkv_stride_(stride_of(spec.mla ? int64_t{spec.heads} * spec.head_dim
                                     : int64_t{spec.heads + 2 * spec.kv_heads} * spec.head_dim)),
      attention_stride_(
          stride_of(int64_t{spec.heads} * (spec.mla ? spec.mla->v_head_dim : spec.head_dim))),
      gate_up_stride_(stride_of(2 * widest_mlp(spec))),
      inner_stride_(stride_of(widest_mlp(spec))),
      vocab_stride_(stride_of(spec.vocab)),
      hidden_(arena_.take<float>(limits.max_tokens * hidden_stride_)),
      normed_(arena_.take<float>(limits.max_tokens * hidden_stride_)),
      update_(arena_.take<float>(limits.max_tokens * hidden_stride_)),
      qkv_(arena_.take<float>(limits.max_tokens * qkv_stride_)),
      attention_(arena_.take<float>(limits.max_tokens * attention_stride_)),
      gate_up_(arena_.take<float>(limits.max_tokens * gate_up_stride_)),
      inner_(arena_.take<float>(limits.max_tokens * inner_stride_)),
      last_(arena_.take<float>(limits.max_rows * hidden_stride_)),
      logits_(arena_.take<float>(std::min(limits.max_rows, kLogitRows) * vocab_stride_)) {
  const int64_t packed_rows = std::max(limits.max_tokens, kLogitRows);
  packed_.data = arena_.take<std::byte>(kernels::PackedRows::size_bytes(
      kernels::Dtype::kBf16, packed_rows, widest_input(spec)));  // int8 needs no more, see pack()
  packed_.scale = arena_.take<float>(packed_rows);
  packed_.sum = arena_.take<int32_t>(packed_rows);
  const double scale =
      spec.attention_scale.value_or(1.0 / core::math::sqrt(static_cast<double>(spec.head_dim)));
  attention_scale_ = static_cast<float>(spec.mla ? scale * rope_softmax_factor(spec.rope) : scale);
  const int64_t tokens = limits.max_tokens;
  if (spec.mla) {
    const int64_t latent = spec.mla->kv_lora_rank + spec.mla->qk_rope_head_dim;
    q_rank_stride_ = stride_of(spec.mla->q_lora_rank);
    latent_stride_ = stride_of(latent);
    q_latent_stride_ = stride_of(spec.heads * latent);
    out_latent_stride_ = stride_of(int64_t{spec.heads} * spec.mla->kv_lora_rank);
    q_rank_ = arena_.take<float>(tokens * q_rank_stride_);
    latent_ = arena_.take<float>(tokens * latent_stride_);
    q_latent_ = arena_.take<float>(tokens * q_latent_stride_);
    out_latent_ = arena_.take<float>(tokens * out_latent_stride_);
  }
  if (spec.moe) {
    router_stride_ = stride_of(spec.moe->experts);
    router_ = arena_.take<float>(tokens * router_stride_);
    gathered_ = arena_.take<float>(tokens * hidden_stride_);
    answered_ = arena_.take<float>(tokens * hidden_stride_);
    chosen_ = arena_.take<int32_t>(tokens * spec.moe->experts_per_token);
    chosen_weight_ = arena_.take<float>(tokens * spec.moe->experts_per_token);
    expert_end_ = arena_.take<int32_t>(spec.moe->experts);
    by_expert_ = arena_.take<int32_t>(tokens * spec.moe->experts_per_token);
  }
}

int64_t Forward::workspace_bytes(const catalog::ModelSpec& spec, const ForwardLimits& limits) {
  return Forward(spec, limits, kernels::Arena()).arena_.used_bytes();
}

Result<Forward> Forward::create(const Model& model, const KvStore& kv,
                                const kernels::Kernels& kernels, kernels::ThreadPool& pool,
                                const ForwardLimits& limits, const ForwardOptions& options) {
  Result<kernels::Pages> pages =
      kernels::Pages::create(workspace_bytes(model.spec(), limits), true);
  if (!pages.ok()) return pages.error();
  Forward forward(model.spec(), limits, kernels::Arena(std::move(pages).value()));
  forward.model_ = &model;
  forward.kv_ = &kv;
  forward.kernels_ = &kernels;
  forward.pool_ = &pool;
  forward.options_ = options;
  forward.positions_.reserve(static_cast<size_t>(limits.max_tokens));
  forward.token_pages_.reserve(static_cast<size_t>(limits.max_tokens));
  forward.pieces_.reserve(
      static_cast<size_t>(limits.max_rows + limits.max_tokens / kPieceTokens + 1));
  return forward;
}

void Forward::prepare(std::span<const ForwardRow> rows) {
  positions_.clear();
  token_pages_.clear();
  pieces_.clear();
  tokens_ = 0;
  wanting_ = 0;
  PRONY_CHECK(rows.size() <= static_cast<size_t>(limits_.max_rows), "step has too many rows");
  for (size_t r = 0; r < rows.size(); ++r) {
    const ForwardRow& row = rows[r];
    const auto count = static_cast<int32_t>(row.tokens.size());
    PRONY_CHECK(count >= 1 && row.first_position >= 0 &&
                    row.first_position + count <= limits_.max_context &&
                    tokens_ + count <= limits_.max_tokens,
                "step exceeds the executor's capacity");
    const int32_t last_page = (row.first_position + count - 1) / kernels::kPageTokens;
    PRONY_CHECK(row.pages.size() > static_cast<size_t>(last_page), "row has too few pages");
    for (int32_t page = 0; page <= last_page; ++page) {
      const int32_t id = row.pages[static_cast<size_t>(page)];
      PRONY_CHECK(id >= 0 && id < kv_->page_count(), "page does not exist");
    }
    for (int32_t i = 0; i < count; ++i) {
      const int32_t position = row.first_position + i;
      positions_.push_back(position);
      token_pages_.push_back(row.pages[static_cast<size_t>(position / kernels::kPageTokens)]);
    }
    for (int32_t begin = 0; begin < count; begin += kPieceTokens) {
      pieces_.push_back({.row = static_cast<int32_t>(r),
                         .token_begin = begin,
                         .token_end = std::min(begin + kPieceTokens, count),
                         .first = tokens_});
    }
    tokens_ += count;
    if (row.wants_logits) ++wanting_;
  }
}

void Forward::embed(std::span<const ForwardRow> rows) {
  const OperatorSpan span = timed(OperatorKind::kEmbed);
  float* target = hidden_;
  const auto factor = static_cast<float>(core::math::sqrt(static_cast<double>(spec_.hidden)));
  for (const ForwardRow& row : rows) {
    for (const int32_t token : row.tokens) {
      model_->embed(token, target);
      if (spec_.scaled_embedding) {
        for (int32_t i = 0; i < spec_.hidden; ++i) target[i] *= factor;
      }
      target += hidden_stride_;
    }
  }
}

// The rows as the product with `weight` reads them; null if it reads x.
const kernels::PackedRows* Forward::pack(const float* x, int64_t x_stride, int64_t rows,
                                         const kernels::PackedMatrix& weight) {
  const bool bf16 = weight.dtype() == kernels::Dtype::kBf16 && options_.bf16_rows;
  if (!bf16 && weight.dtype() != kernels::Dtype::kI8) return nullptr;
  packed_.dtype = weight.dtype();
  packed_.block_bytes = kernels::PackedRows::block_bytes_for(weight.dtype(), weight.inputs());
  pool_->run(rows, kTokenGrain, [&](int64_t begin, int64_t end) {
    kernels_->pack_rows({.x = x + begin * x_stride,
                         .x_stride = x_stride,
                         .rows = end - begin,
                         .inputs = weight.inputs(),
                         .to = &packed_,
                         .first = begin});
  });
  return &packed_;
}

void Forward::matmul(const float* x, int64_t x_stride, int64_t rows,
                     const kernels::PackedMatrix& weight, const float* bias, float* y,
                     int64_t y_stride) {
  const kernels::MatmulArgs args{.x = x,
                                 .x_stride = x_stride,
                                 .packed = pack(x, x_stride, rows, weight),
                                 .rows = rows,
                                 .weight = &weight,
                                 .bias = bias,
                                 .y = y,
                                 .y_stride = y_stride};
  pool_->run(weight.panels(), panel_grain(weight.panels(), pool_->threads()),
             [&](int64_t begin, int64_t end) { kernels_->matmul(args, begin, end); });
}

void Forward::norm(const float* x, int64_t x_stride, int64_t n, const float* weight, float* y,
                   int64_t y_stride) {
  pool_->run(tokens_, kTokenGrain, [&](int64_t begin, int64_t end) {
    kernels_->rmsnorm({.x = x + begin * x_stride,
                       .x_stride = x_stride,
                       .rows = end - begin,
                       .n = n,
                       .weight = weight,
                       .epsilon = static_cast<float>(spec_.rms_epsilon),
                       .y = y + begin * y_stride,
                       .y_stride = y_stride});
  });
}

// The residual connection; with a norm of its own where the model has one.
void Forward::add_to_hidden(const float* out_norm, OperatorKind norm_kind, OperatorKind add_kind) {
  if (out_norm != nullptr) {
    const OperatorSpan span = timed(norm_kind);
    norm(update_, hidden_stride_, spec_.hidden, out_norm, update_, hidden_stride_);
  }
  const OperatorSpan span = timed(add_kind);
  pool_->run(tokens_, kTokenGrain, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      kernels_->add(hidden_ + token * hidden_stride_, update_ + token * hidden_stride_,
                    spec_.hidden);
    }
  });
}

void Forward::gather_last(std::span<const ForwardRow> rows) {
  const OperatorSpan span = timed(OperatorKind::kFinalNorm);
  int64_t end = 0;
  float* target = last_;
  for (const ForwardRow& row : rows) {
    end += static_cast<int64_t>(row.tokens.size());
    if (!row.wants_logits) continue;
    kernels_->rmsnorm({.x = hidden_ + (end - 1) * hidden_stride_,
                       .x_stride = hidden_stride_,
                       .rows = 1,
                       .n = spec_.hidden,
                       .weight = model_->final_norm(),
                       .epsilon = static_cast<float>(spec_.rms_epsilon),
                       .y = target,
                       .y_stride = hidden_stride_});
    target += hidden_stride_;
  }
}

void Forward::run(std::span<const ForwardRow> rows, ForwardObserver* observer) {
  prepare(rows);
  layer_ = -1;
  embed(rows);
  if (observer != nullptr) observer->on_hidden(0, hidden_, hidden_stride_, tokens_);
  for (int32_t i = 0; i < spec_.layers; ++i) {
    layer_ = i;
    const LayerWeights& layer = model_->layer(i);
    {
      const OperatorSpan span = timed(OperatorKind::kAttentionNorm);
      norm(hidden_, hidden_stride_, spec_.hidden, layer.input_norm, normed_, hidden_stride_);
    }
    attention(rows, i, layer);
    add_to_hidden(layer.attention_out_norm, OperatorKind::kPostAttentionNorm,
                  OperatorKind::kMlpNorm);
    {
      const OperatorSpan span = timed(OperatorKind::kMlpNorm);
      norm(hidden_, hidden_stride_, spec_.hidden, layer.mlp_norm, normed_, hidden_stride_);
    }
    if (model_->has_experts(i)) {
      experts(layer.moe);
    } else {
      mlp(normed_, tokens_, layer.mlp, update_,
          {OperatorKind::kGateUp, OperatorKind::kActivation, OperatorKind::kDown});
    }
    // The list adds a layer's result together with the norm that reads it next.
    add_to_hidden(layer.mlp_out_norm, OperatorKind::kPostMlpNorm,
                  i + 1 < spec_.layers ? OperatorKind::kAttentionNorm : OperatorKind::kFinalNorm);
    if (observer != nullptr) observer->on_hidden(i + 1, hidden_, hidden_stride_, tokens_);
  }
  layer_ = -1;
  gather_last(rows);
}

void Forward::compute_logits(int32_t first, int32_t count) {
  PRONY_CHECK(first >= 0 && count >= 1 && count <= kLogitRows && first + count <= wanting_);
  const OperatorSpan span = timed(OperatorKind::kHead);
  matmul(last_ + first * hidden_stride_, hidden_stride_, count, model_->head(), nullptr, logits_,
         vocab_stride_);
  if (!spec_.logit_softcap) return;
  for (int32_t row = 0; row < count; ++row) {
    kernels_->softcap(logits(row), spec_.vocab, static_cast<float>(*spec_.logit_softcap));
  }
}

float* Forward::logits(int32_t row) {
  return logits_ + row * vocab_stride_;
}

}  // namespace prony::engine
