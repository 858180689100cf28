// Parameters, weight bytes and KV bytes of a model: what it occupies, apart from what a step does.
// Multi-token prediction layers are left out, as the published totals leave them out.
// Thread safety: pure functions of a spec that passed the catalogue's checks.
// Source: the modules of transformers' modeling_*.py; oracle: the published totals in data/models.
#pragma once
#include <cstdint>

#include "prony/catalog/model_spec.hpp"
#include "prony/perfmodel/precision.hpp"

namespace prony::perfmodel {

/// By the classes that Precision tells apart [parameters].
struct ParameterCount {
  int64_t embedding = 0;
  int64_t head = 0;       // 0 if tied
  int64_t attention = 0;  // projections
  int64_t mlp = 0;        // dense MLPs and shared experts
  int64_t experts = 0;    // matrices of the routed experts, all of them
  int64_t other = 0;      // norms, biases, routers, sinks
  int64_t total() const { return embedding + head + attention + mlp + experts + other; }
  /// Parameters (biases too) of the routed experts that one token does not use.
  int64_t idle_experts = 0;
  /// Per token: everything but the idle experts, embedding and head included. Model cards often
  /// leave those two out, so their "active" is up to 11 % less.
  int64_t active() const { return total() - idle_experts; }
};
ParameterCount parameter_count(const catalog::ModelSpec& spec);

/// Memory of the weights [bytes].
double weight_bytes(const catalog::ModelSpec& spec, const Precision& precision);

/// KV elements that one layer keeps for one token: 2 * kv_heads * head_dim (keys and values), or
/// for latent attention kv_lora_rank + qk_rope_head_dim (one latent, no factor 2).
int64_t kv_elements_per_token_layer(const catalog::ModelSpec& spec);

/// KV bytes that a further token takes while every window still has room: an upper bound for
/// models with sliding windows, exact for all others.
double kv_bytes_per_token(const catalog::ModelSpec& spec, double kv_bytes_per_element);

/// KV bytes of a sequence of `context` tokens when sliding layers keep their window only.
double kv_bytes(const catalog::ModelSpec& spec, double kv_bytes_per_element, int64_t context);

}  // namespace prony::perfmodel
