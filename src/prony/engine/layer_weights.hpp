// The weights of one decoder layer as the forward pass reads them: packed matrices and norm
// vectors. What a model does not have is null or empty. Thread safety: views of a Model's memory.
#pragma once
#include <cstdint>
#include <vector>

#include "prony/kernels/packed_matrix.hpp"

namespace prony::engine {

/// Multi-head latent attention with the up-projections absorbed: queries are carried into the space
/// of the latent, so the cache holds one row of kv_lora_rank + rope numbers a token, not one a
/// head. Rotary parts are reordered to the half-split layout when they are packed. Source:
/// DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1 and appendix C.
struct MlaWeights {
  kernels::PackedMatrix q_a;                    // [q_lora_rank][hidden]; unused if the rank is 0
  float* q_a_norm = nullptr;                    // [q_lora_rank] or null
  kernels::PackedMatrix q;                      // [heads head_dim][q_lora_rank, or hidden]
  kernels::PackedMatrix kv_a;                   // [kv_lora_rank + rope][hidden]
  float* kv_a_norm = nullptr;                   // [kv_lora_rank]
  std::vector<kernels::PackedMatrix> key_up;    // [heads] of [kv_lora_rank][nope]: transposed
  std::vector<kernels::PackedMatrix> value_up;  // [heads] of [v_head_dim][kv_lora_rank]
};

struct MlpWeights {
  kernels::PackedMatrix gate_up;  // [2 intermediate][hidden]: gate, then up
  float* gate_up_bias = nullptr;  // [2 intermediate] or null
  kernels::PackedMatrix down;     // [hidden][intermediate]
  float* down_bias = nullptr;     // [hidden] or null
};

/// Routed experts, and what runs beside them.
struct MoeWeights {
  kernels::PackedMatrix router;  // [experts][hidden], always fp32: near ties decide
  float* router_bias = nullptr;  // [experts] or null; DeepSeek-V3: for choosing only
  std::vector<MlpWeights> experts;
  MlpWeights shared;                  // of shared_intermediate; unused if that is 0
  kernels::PackedMatrix shared_gate;  // [1][hidden]; Qwen2-MoE only
};

struct LayerWeights {
  float* input_norm = nullptr;  // [hidden]
  kernels::PackedMatrix qkv;    // [(heads + 2 kv_heads) head_dim][hidden]: q, then k, then v
  float* qkv_bias = nullptr;    // [(heads + 2 kv_heads) head_dim] or null
  float* q_norm = nullptr;      // [head_dim] or null
  float* k_norm = nullptr;      // [head_dim] or null
  MlaWeights mla;               // instead of qkv
  kernels::PackedMatrix o;      // [hidden][heads, times head_dim or v_head_dim]
  float* o_bias = nullptr;      // [hidden] or null
  float* attention_out_norm = nullptr;  // [hidden] or null (Gemma-2)
  float* mlp_norm = nullptr;            // [hidden]
  MlpWeights mlp;                       // dense layers
  MoeWeights moe;                       // the others
  float* mlp_out_norm = nullptr;        // [hidden] or null (Gemma-2)
};

}  // namespace prony::engine
