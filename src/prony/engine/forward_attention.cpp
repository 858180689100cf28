// Attention of one layer: projections, positions, the way into the pages, and the walk over them.
#include <algorithm>

#include "prony/engine/forward.hpp"

namespace prony::engine {

using perfmodel::OperatorKind;

void Forward::attention(std::span<const ForwardRow> rows, int32_t index,
                        const LayerWeights& layer) {
  const kernels::KvLayout kv = kv_->layer(index);
  if (spec_.mla) {
    project_and_store_latent(layer.mla, kv);
    attend(rows, index, kv, q_latent_, q_latent_stride_, out_latent_, out_latent_stride_);
    const OperatorSpan span = timed(OperatorKind::kMlaAbsorbValue);
    per_head(out_latent_, out_latent_stride_, spec_.mla->kv_lora_rank, layer.mla.value_up,
             attention_, attention_stride_, spec_.mla->v_head_dim);
  } else {
    project_and_store(layer, kv);
    attend(rows, index, kv, qkv_, qkv_stride_, attention_, attention_stride_);
  }
  const OperatorSpan span = timed(OperatorKind::kOutput);
  matmul(attention_, attention_stride_, tokens_, layer.o, layer.o_bias, update_, hidden_stride_);
}

// Norms per head (Qwen3), rotation by position, and the way into the pages.
void Forward::project_and_store(const LayerWeights& layer, const kernels::KvLayout& kv) {
  {
    const OperatorSpan span = timed(OperatorKind::kQkv);
    matmul(normed_, hidden_stride_, tokens_, layer.qkv, layer.qkv_bias, qkv_, qkv_stride_);
  }
  const OperatorSpan span = timed(OperatorKind::kRopeStore);
  const int64_t head_dim = spec_.head_dim;
  const int64_t q_heads = spec_.heads;
  const int64_t kv_heads = spec_.kv_heads;
  const auto norm_heads = [&](float* heads, int64_t count, const float* weight) {
    kernels_->rmsnorm({.x = heads,
                       .x_stride = head_dim,
                       .rows = count,
                       .n = head_dim,
                       .weight = weight,
                       .epsilon = static_cast<float>(spec_.rms_epsilon),
                       .y = heads,
                       .y_stride = head_dim});
  };
  pool_->run(tokens_, kTokenGrain, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      float* q = qkv_ + token * qkv_stride_;
      float* k = q + q_heads * head_dim;
      const float* v = k + kv_heads * head_dim;
      if (layer.q_norm != nullptr) {
        norm_heads(q, q_heads, layer.q_norm);
        norm_heads(k, kv_heads, layer.k_norm);
      }
      const int32_t position = positions_[static_cast<size_t>(token)];
      for (int64_t head = 0; head < q_heads + kv_heads; ++head) {
        kernels_->rope(q + head * head_dim, rope_.cosine(position), rope_.sine(position),
                       rope_.half());
      }
      kernels_->store_kv({.key = k,
                          .value = v,
                          .kv = &kv,
                          .page = token_pages_[static_cast<size_t>(token)],
                          .slot = position % kernels::kPageTokens});
    }
  });
}

// Queries in the space of the latent, [kv_lora_rank | rope] for each head; one such row a token is
// the key of all heads, and its front their value.
void Forward::project_and_store_latent(const MlaWeights& mla, const kernels::KvLayout& kv) {
  const catalog::Mla& shape = *spec_.mla;
  const int64_t rank = shape.kv_lora_rank, nope = shape.qk_nope_head_dim;
  const int64_t width = rank + shape.qk_rope_head_dim;
  const float* query_input = normed_;
  int64_t query_stride = hidden_stride_;
  if (shape.q_lora_rank > 0) {
    {
      const OperatorSpan span = timed(OperatorKind::kMlaQueryDown);
      matmul(normed_, hidden_stride_, tokens_, mla.q_a, nullptr, q_rank_, q_rank_stride_);
    }
    const OperatorSpan span = timed(OperatorKind::kMlaQueryNorm);
    norm(q_rank_, q_rank_stride_, shape.q_lora_rank, mla.q_a_norm, q_rank_, q_rank_stride_);
    query_input = q_rank_;
    query_stride = q_rank_stride_;
  }
  {
    const OperatorSpan span = timed(OperatorKind::kMlaQueryUp);
    matmul(query_input, query_stride, tokens_, mla.q, nullptr, qkv_, qkv_stride_);
  }
  {
    const OperatorSpan span = timed(OperatorKind::kMlaKvDown);
    matmul(normed_, hidden_stride_, tokens_, mla.kv_a, nullptr, latent_, latent_stride_);
  }
  {
    const OperatorSpan span = timed(OperatorKind::kMlaKvNorm);
    norm(latent_, latent_stride_, rank, mla.kv_a_norm, latent_, latent_stride_);
  }
  {
    const OperatorSpan span = timed(OperatorKind::kMlaAbsorbQuery);
    per_head(qkv_, qkv_stride_, spec_.head_dim, mla.key_up, q_latent_, q_latent_stride_, width);
  }
  const OperatorSpan span = timed(OperatorKind::kRopeStore);
  pool_->run(tokens_, kTokenGrain, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const int32_t position = positions_[static_cast<size_t>(token)];
      const auto rotate = [&](float* x) {
        kernels_->rope(x, rope_.cosine(position), rope_.sine(position), rope_.half());
      };
      for (int64_t head = 0; head < spec_.heads; ++head) {
        const float* from = qkv_ + token * qkv_stride_ + head * spec_.head_dim + nope;
        float* to = q_latent_ + token * q_latent_stride_ + head * width + rank;
        std::copy(from, from + shape.qk_rope_head_dim, to);
        rotate(to);
      }
      float* latent = latent_ + token * latent_stride_;
      rotate(latent + rank);
      kernels_->store_kv({.key = latent,
                          .value = latent,
                          .kv = &kv,
                          .page = token_pages_[static_cast<size_t>(token)],
                          .slot = position % kernels::kPageTokens});
    }
  });
}

// A matrix of its own for every head: x_step and y_step floats from a head to the next.
void Forward::per_head(const float* x, int64_t x_stride, int64_t x_step,
                       const std::vector<kernels::PackedMatrix>& weights, float* y,
                       int64_t y_stride, int64_t y_step) {
  pool_->run(static_cast<int64_t>(weights.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      const kernels::PackedMatrix& weight = weights[static_cast<size_t>(head)];
      kernels_->matmul({.x = x + head * x_step,
                        .x_stride = x_stride,
                        .rows = tokens_,
                        .weight = &weight,
                        .bias = nullptr,
                        .y = y + head * y_step,
                        .y_stride = y_stride},
                       0, weight.panels());
    }
  });
}

void Forward::attend(std::span<const ForwardRow> rows, int32_t index, const kernels::KvLayout& kv,
                     const float* q, int64_t q_stride, float* out, int64_t out_stride) {
  const OperatorSpan span = timed(OperatorKind::kAttentionDecode);  // or prefill: the trace knows
  // A row of attention is one head of one token. A piece is cut again where its rows are many (all
  // heads of latent attention read one key), so that one sequence in decode employs all threads.
  const int64_t group = spec_.heads / kv.kv_heads;
  const int64_t cuts = std::max<int64_t>(1, group / kTaskHeads);
  const int64_t tasks = static_cast<int64_t>(pieces_.size()) * kv.kv_heads * cuts;
  const int32_t window = catalog::attention_window(spec_, index).value_or(0);
  pool_->run(tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t cut = task % cuts, head = task / cuts % kv.kv_heads;
      const Piece& piece = pieces_[static_cast<size_t>(task / cuts / kv.kv_heads)];
      const ForwardRow& row = rows[static_cast<size_t>(piece.row)];
      const kernels::AttentionArgs args{
          .q = q + piece.first * q_stride,
          .q_stride = q_stride,
          .out = out + piece.first * out_stride,
          .out_stride = out_stride,
          .tokens = static_cast<int32_t>(row.tokens.size()),
          .first_position = row.first_position,
          .pages = row.pages.data(),
          .kv = &kv,
          .heads = spec_.heads,
          .scale = attention_scale_,
          .window = window,
          .softcap = static_cast<float>(spec_.attention_softcap.value_or(0))};
      const int64_t first = piece.token_begin * group;
      const int64_t count = (piece.token_end - piece.token_begin) * group;
      kernels_->attention(args, static_cast<int32_t>(head), first + count * cut / cuts,
                          first + count * (cut + 1) / cuts);
    }
  });
}

}  // namespace prony::engine
