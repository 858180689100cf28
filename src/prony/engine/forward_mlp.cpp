// The MLP of one layer, dense or a mixture of experts.
#include <algorithm>
#include <limits>

#include "prony/engine/forward.hpp"

namespace prony::engine {

using perfmodel::OperatorKind;

void Forward::mlp(const float* x, int64_t rows, const MlpWeights& weights, float* y,
                  const MlpKinds& kinds) {
  {
    const OperatorSpan span = timed(kinds.gate_up);
    matmul(x, hidden_stride_, rows, weights.gate_up, weights.gate_up_bias, gate_up_,
           gate_up_stride_);
  }
  const int64_t n = weights.down.inputs();
  const auto activate =
      spec_.activation == catalog::Activation::kGeluTanh ? kernels_->gelu_mul : kernels_->silu_mul;
  {
    const OperatorSpan span = timed(kinds.activation);
    pool_->run(rows, kTokenGrain, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* gate = gate_up_ + row * gate_up_stride_;
        activate(gate, gate + n, inner_ + row * inner_stride_, n);
      }
    });
  }
  const OperatorSpan span = timed(kinds.down);
  matmul(inner_, inner_stride_, rows, weights.down, weights.down_bias, y, hidden_stride_);
}

// Every token picks its experts; then expert by expert, over the tokens that picked it.
void Forward::experts(const MoeWeights& moe) {
  const auto hidden = static_cast<size_t>(spec_.hidden);
  {
    const OperatorSpan span = timed(OperatorKind::kRouter);
    route(moe);
  }
  for (int64_t token = 0; token < tokens_; ++token) {
    std::fill_n(update_ + token * hidden_stride_, hidden, 0.0f);
  }
  const int64_t k = spec_.moe->experts_per_token;
  int64_t begin = 0;
  for (size_t expert = 0; expert < moe.experts.size(); ++expert) {
    const int64_t end = expert_end_[expert];
    const int64_t count = end - begin;
    if (count == 0) continue;
    {
      const OperatorSpan span = timed(OperatorKind::kExpertCombine);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t token = by_expert_[begin + i] / k;
        std::copy_n(normed_ + token * hidden_stride_, hidden, gathered_ + i * hidden_stride_);
      }
    }
    mlp(gathered_, count, moe.experts[expert], answered_,
        {OperatorKind::kExpertGateUp, OperatorKind::kExpertActivation, OperatorKind::kExpertDown});
    const OperatorSpan span = timed(OperatorKind::kExpertCombine);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t place = by_expert_[begin + i];
      kernels_->add_scaled(update_ + place / k * hidden_stride_, answered_ + i * hidden_stride_,
                           spec_.hidden, chosen_weight_[place]);
    }
    begin = end;
  }
  if (spec_.moe->shared_intermediate > 0) add_shared(moe);
}

void Forward::add_shared(const MoeWeights& moe) {
  mlp(normed_, tokens_, moe.shared, answered_,
      {OperatorKind::kSharedGateUp, OperatorKind::kSharedActivation, OperatorKind::kSharedDown});
  const OperatorSpan span = timed(OperatorKind::kExpertCombine);
  if (spec_.moe->shared_gate) {
    matmul(normed_, hidden_stride_, tokens_, moe.shared_gate, nullptr, router_, router_stride_);
  }
  for (int64_t token = 0; token < tokens_; ++token) {
    float weight = 1;
    if (spec_.moe->shared_gate) {
      kernels_->exp(router_ + token * router_stride_, &weight, 1, 0, -1);
      weight = 1 / (1 + weight);
    }
    kernels_->add_scaled(update_ + token * hidden_stride_, answered_ + token * hidden_stride_,
                         spec_.hidden, weight);
  }
}

// Fills chosen_, chosen_weight_, and the places of every expert in by_expert_.
void Forward::route(const MoeWeights& moe) {
  const catalog::Moe& shape = *spec_.moe;
  const int64_t experts = shape.experts, k = shape.experts_per_token;
  matmul(normed_, hidden_stride_, tokens_, moe.router, nullptr, router_, router_stride_);
  pool_->run(tokens_, kTokenGrain, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      float* scores = router_ + token * router_stride_;
      if (shape.scoring == catalog::RouterScoring::kSigmoid) {
        kernels_->exp(scores, scores, experts, 0, -1);
        for (int64_t e = 0; e < experts; ++e) scores[e] = 1 / (1 + scores[e]);
      } else {
        float largest = scores[0], sum = 0;
        for (int64_t e = 1; e < experts; ++e) largest = std::max(largest, scores[e]);
        kernels_->exp(scores, scores, experts, largest, 1);
        for (int64_t e = 0; e < experts; ++e) sum += scores[e];
        for (int64_t e = 0; e < experts; ++e) scores[e] /= sum;
      }
      choose(scores, token, moe.router_bias);
    }
  });
  // A counting sort by expert; inside an expert by token.
  std::fill_n(expert_end_, experts, 0);
  for (int64_t place = 0; place < tokens_ * k; ++place) ++expert_end_[chosen_[place]];
  int32_t begin = 0;
  for (int64_t e = 0; e < experts; ++e) {
    const int32_t count = expert_end_[e];
    expert_end_[e] = begin;
    begin += count;
  }
  for (int64_t place = 0; place < tokens_ * k; ++place) {
    by_expert_[expert_end_[chosen_[place]]++] = static_cast<int32_t>(place);
  }
}

// The k best experts of a token, inside its best groups where the model has groups, the lower
// number on a tie. A bias moves the choice and not the weight.
void Forward::choose(const float* scores, int64_t token, const float* bias) {
  const catalog::Moe& shape = *spec_.moe;
  const int32_t experts = shape.experts, k = shape.experts_per_token;
  const int32_t per_group = experts / shape.groups;
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  const auto score = [&](int32_t e) { return bias != nullptr ? scores[e] + bias[e] : scores[e]; };
  // A group is worth its best expert; with a bias (DeepSeek-V3) the sum of its best two.
  const auto worth = [&](int32_t group) {
    float best = kNever, second = kNever;
    for (int32_t e = group * per_group; e < (group + 1) * per_group; ++e) {
      const float s = score(e);
      if (s > best) {
        second = best;
        best = s;
      } else if (s > second) {
        second = s;
      }
    }
    return bias != nullptr && per_group > 1 ? best + second : best;
  };
  // How many groups come before this one; few enough groups for counting.
  const auto open = [&](int32_t group) {
    if (shape.groups_per_token >= shape.groups) return true;
    const float own = worth(group);
    int32_t better = 0;
    for (int32_t g = 0; g < shape.groups; ++g) {
      const float other = worth(g);
      if (other > own || (other == own && g < group)) ++better;
    }
    return better < shape.groups_per_token;
  };
  int32_t* chosen = chosen_ + token * k;
  int32_t count = 0;  // kept sorted by score, then by number
  for (int32_t group = 0; group < shape.groups; ++group) {
    if (!open(group)) continue;
    for (int32_t e = group * per_group; e < (group + 1) * per_group; ++e) {
      int32_t at = count < k ? count : k;
      while (at > 0 && score(e) > score(chosen[at - 1])) --at;
      if (at == k) continue;
      for (int32_t i = std::min(count, k - 1); i > at; --i) chosen[i] = chosen[i - 1];
      chosen[at] = e;
      count = std::min(count + 1, k);
    }
  }
  std::sort(chosen, chosen + count);
  for (int32_t i = count; i < k; ++i) chosen[i] = 0;  // fewer experts in its groups than k
  float sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += scores[chosen[i]];
  for (int32_t i = 0; i < k; ++i) {
    float weight = i < count ? scores[chosen[i]] : 0;
    if (shape.normalize_top_k) weight /= sum;
    chosen_weight_[token * k + i] = weight * static_cast<float>(shape.routed_scaling);
  }
}

}  // namespace prony::engine
