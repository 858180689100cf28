#include "prony/engine/forward.hpp"

#include <algorithm>

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"

namespace prony::engine {
namespace {

// Tokens of a prefill that one attention task takes: enough to use a page often once it is in
// cache, few enough to balance threads.
constexpr int32_t kPieceTokens = 32;
// Tokens that one task of an elementwise operator takes.
constexpr int64_t kTokenGrain = 8;

// Rows start on cache lines, and an odd number of lines apart: rows a power of two apart would
// fall into the same few cache sets, and a matrix product reads twelve of them at a time.
int64_t stride_of(int64_t elements) {
  const int64_t lines = kernels::round_up(elements, kernels::kLanes) / kernels::kLanes;
  return (lines % 2 == 0 ? lines + 1 : lines) * kernels::kLanes;
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
      rope_(spec.rope, spec.head_dim, limits.max_context, arena_),
      hidden_stride_(stride_of(spec.hidden)),
      qkv_stride_(stride_of(int64_t{spec.heads + 2 * spec.kv_heads} * spec.head_dim)),
      attention_stride_(stride_of(int64_t{spec.heads} * spec.head_dim)),
      gate_up_stride_(stride_of(int64_t{2} * spec.intermediate)),
      inner_stride_(stride_of(spec.intermediate)),
      vocab_stride_(stride_of(spec.vocab)),
      hidden_(arena_.take<float>(limits.max_tokens * hidden_stride_)),
      normed_(arena_.take<float>(limits.max_tokens * hidden_stride_)),
      qkv_(arena_.take<float>(limits.max_tokens * qkv_stride_)),
      attention_(arena_.take<float>(limits.max_tokens * attention_stride_)),
      gate_up_(arena_.take<float>(limits.max_tokens * gate_up_stride_)),
      inner_(arena_.take<float>(limits.max_tokens * inner_stride_)),
      last_(arena_.take<float>(limits.max_rows * hidden_stride_)),
      logits_(arena_.take<float>(std::min(limits.max_rows, kLogitRows) * vocab_stride_)) {}

int64_t Forward::workspace_bytes(const catalog::ModelSpec& spec, const ForwardLimits& limits) {
  return Forward(spec, limits, kernels::Arena()).arena_.used_bytes();
}

Result<Forward> Forward::create(const Model& model, const KvStore& kv,
                                const kernels::Kernels& kernels, kernels::ThreadPool& pool,
                                const ForwardLimits& limits) {
  Result<kernels::Pages> pages =
      kernels::Pages::create(workspace_bytes(model.spec(), limits), true);
  if (!pages.ok()) return pages.error();
  Forward forward(model.spec(), limits, kernels::Arena(std::move(pages).value()));
  forward.model_ = &model;
  forward.kv_ = &kv;
  forward.kernels_ = &kernels;
  forward.pool_ = &pool;
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
  float* target = hidden_;
  for (const ForwardRow& row : rows) {
    for (const int32_t token : row.tokens) {
      model_->embed(token, target);
      target += hidden_stride_;
    }
  }
}

void Forward::matmul(const float* x, int64_t x_stride, int64_t rows,
                     const kernels::PackedMatrix& weight, const float* bias, float* y,
                     int64_t y_stride) {
  const kernels::MatmulArgs args{.x = x,
                                 .x_stride = x_stride,
                                 .rows = rows,
                                 .weight = &weight,
                                 .bias = bias,
                                 .y = y,
                                 .y_stride = y_stride};
  pool_->run(weight.panels(), panel_grain(weight.panels(), pool_->threads()),
             [&](int64_t begin, int64_t end) { kernels_->matmul(args, begin, end); });
}

void Forward::norm(const float* x, int64_t x_stride, const float* weight, float* y) {
  pool_->run(tokens_, kTokenGrain, [&](int64_t begin, int64_t end) {
    kernels_->rmsnorm({.x = x + begin * x_stride,
                       .x_stride = x_stride,
                       .rows = end - begin,
                       .n = spec_.hidden,
                       .weight = weight,
                       .epsilon = static_cast<float>(spec_.rms_epsilon),
                       .y = y + begin * hidden_stride_,
                       .y_stride = hidden_stride_});
  });
}

void Forward::add_to_hidden(const float* y, int64_t y_stride) {
  pool_->run(tokens_, kTokenGrain, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      kernels_->add(hidden_ + token * hidden_stride_, y + token * y_stride, spec_.hidden);
    }
  });
}

// Norms per head (Qwen3), rotation by position, and the way into the pages.
void Forward::position_and_store(const LayerWeights& layer, const kernels::KvLayout& kv) {
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

void Forward::attend(std::span<const ForwardRow> rows, const kernels::KvLayout& kv) {
  const double scale =
      spec_.attention_scale.value_or(1.0 / core::math::sqrt(static_cast<double>(spec_.head_dim)));
  const int64_t tasks = static_cast<int64_t>(pieces_.size()) * spec_.kv_heads;
  pool_->run(tasks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const Piece& piece = pieces_[static_cast<size_t>(task / spec_.kv_heads)];
      const ForwardRow& row = rows[static_cast<size_t>(piece.row)];
      const kernels::AttentionArgs args{.q = qkv_ + piece.first * qkv_stride_,
                                        .q_stride = qkv_stride_,
                                        .out = attention_ + piece.first * attention_stride_,
                                        .out_stride = attention_stride_,
                                        .tokens = static_cast<int32_t>(row.tokens.size()),
                                        .first_position = row.first_position,
                                        .pages = row.pages.data(),
                                        .kv = &kv,
                                        .heads = spec_.heads,
                                        .scale = static_cast<float>(scale)};
      kernels_->attention(args, static_cast<int32_t>(task % spec_.kv_heads), piece.token_begin,
                          piece.token_end);
    }
  });
}

void Forward::mlp(const LayerWeights& layer) {
  matmul(normed_, hidden_stride_, tokens_, layer.gate_up, layer.gate_up_bias, gate_up_,
         gate_up_stride_);
  pool_->run(tokens_, kTokenGrain, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const float* gate = gate_up_ + token * gate_up_stride_;
      kernels_->silu_mul(gate, gate + spec_.intermediate, inner_ + token * inner_stride_,
                         spec_.intermediate);
    }
  });
  matmul(inner_, inner_stride_, tokens_, layer.down, layer.down_bias, normed_, hidden_stride_);
}

void Forward::gather_last(std::span<const ForwardRow> rows) {
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
  embed(rows);
  if (observer != nullptr) observer->on_hidden(0, hidden_, hidden_stride_, tokens_);
  for (int32_t i = 0; i < spec_.layers; ++i) {
    const LayerWeights& layer = model_->layer(i);
    const kernels::KvLayout kv = kv_->layer(i);
    norm(hidden_, hidden_stride_, layer.input_norm, normed_);
    matmul(normed_, hidden_stride_, tokens_, layer.qkv, layer.qkv_bias, qkv_, qkv_stride_);
    position_and_store(layer, kv);
    attend(rows, kv);
    matmul(attention_, attention_stride_, tokens_, layer.o, layer.o_bias, normed_, hidden_stride_);
    add_to_hidden(normed_, hidden_stride_);
    norm(hidden_, hidden_stride_, layer.post_norm, normed_);
    mlp(layer);
    add_to_hidden(normed_, hidden_stride_);
    if (observer != nullptr) observer->on_hidden(i + 1, hidden_, hidden_stride_, tokens_);
  }
  gather_last(rows);
}

void Forward::compute_logits(int32_t first, int32_t count) {
  PRONY_CHECK(first >= 0 && count >= 1 && count <= kLogitRows && first + count <= wanting_);
  matmul(last_ + first * hidden_stride_, hidden_stride_, count, model_->head(), nullptr, logits_,
         vocab_stride_);
}

float* Forward::logits(int32_t row) {
  return logits_ + row * vocab_stride_;
}

}  // namespace prony::engine
