// Small models of the engine tests: each differs from the first in what its name says.
// Thread safety: pure functions.
#pragma once
#include <string>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/core/rng.hpp"

namespace prony::engine {

struct NamedSpec {
  std::string name;  // a C++ identifier
  catalog::ModelSpec spec;
};

inline catalog::ModelSpec small_spec() {
  catalog::ModelSpec spec;
  spec.id = "small";
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 3;
  spec.hidden = 48;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 12;
  spec.intermediate = 80;
  spec.vocab = 101;
  spec.max_context = 1024;
  return spec;
}

inline std::vector<NamedSpec> small_specs() {
  std::vector<NamedSpec> all;
  const auto with = [&](const char* name) -> catalog::ModelSpec& {
    all.push_back({name, small_spec()});
    return all.back().spec;
  };
  with("Plain");
  {
    catalog::ModelSpec& spec = with("EveryHeadItsOwnKeys");
    spec.kv_heads = 4;
    spec.tied_embeddings = true;
  }
  with("OneKvHead").kv_heads = 1;
  with("QkvBias").qkv_bias = true;
  with("QkNorm").qk_norm = true;
  {
    catalog::ModelSpec& spec = with("AllBiases");
    spec.qkv_bias = spec.o_bias = spec.mlp_bias = true;
    spec.attention_scale = 0.2;
  }
  {
    // Original context 32: over 80 positions pairs lie on both sides of the blend and inside it.
    catalog::ModelSpec& spec = with("Llama3Rope");
    spec.head_dim = 16;
    spec.rope = {.type = catalog::RopeType::kLlama3,
                 .theta = 500,
                 .factor = 8,
                 .low_freq_factor = 1,
                 .high_freq_factor = 4,
                 .original_max_position = 32};
  }
  with("LinearRope").rope = {.type = catalog::RopeType::kLinear, .theta = 1000, .factor = 4};
  {
    catalog::ModelSpec& spec = with("HeadDimOffHiddenOverHeads");  // odd sizes everywhere
    spec.hidden = 35;
    spec.heads = 6;
    spec.kv_heads = 3;
    spec.head_dim = 26;
    spec.intermediate = 51;
    spec.vocab = 77;
    spec.tied_embeddings = true;
    spec.qk_norm = true;
    spec.rms_epsilon = 1e-6;
  }
  {
    catalog::ModelSpec& spec = with("WideEnoughForBlocks");  // more than 256 inputs
    spec.layers = 1;
    spec.hidden = 300;
    spec.heads = 5;
    spec.kv_heads = 5;
    spec.head_dim = 64;
    spec.intermediate = 610;
  }
  return all;
}

/// Families beyond the plain decoder. Their formulas are held against transformers
/// (oracle_test.cpp), their equality laws against themselves.
inline std::vector<NamedSpec> family_specs() {
  std::vector<NamedSpec> all;
  const auto with = [&](const char* name) -> catalog::ModelSpec& {
    all.push_back({name, small_spec()});
    return all.back().spec;
  };
  {
    catalog::ModelSpec& spec = with("Gemma2");
    spec.layers = 2;
    spec.sliding_window = 11;
    spec.sliding_alternates = true;
    spec.attention_softcap = 5;
    spec.logit_softcap = 3;
    spec.sandwich_norms = spec.norm_plus_one = spec.scaled_embedding = true;
    spec.activation = catalog::Activation::kGeluTanh;
  }
  {
    catalog::ModelSpec& spec = with("Experts");
    spec.architecture = "MixtralForCausalLM";
    spec.moe = catalog::Moe{.experts = 7, .experts_per_token = 2, .intermediate = 20};
  }
  {
    catalog::ModelSpec& spec = with("SharedGatedExperts");
    spec.moe = catalog::Moe{.experts = 6,
                            .experts_per_token = 3,
                            .intermediate = 20,
                            .shared_intermediate = 33,
                            .dense_layers = 1,
                            .normalize_top_k = false,
                            .shared_gate = true};
  }
  {
    catalog::ModelSpec& spec = with("LatentAttention");
    spec.mla = catalog::Mla{.q_lora_rank = 20,
                            .kv_lora_rank = 24,
                            .qk_nope_head_dim = 10,
                            .qk_rope_head_dim = 6,
                            .v_head_dim = 14};
    spec.head_dim = 16;
    spec.kv_heads = 4;
    spec.moe = catalog::Moe{.experts = 8,
                            .experts_per_token = 3,
                            .intermediate = 20,
                            .shared_intermediate = 40,
                            .dense_layers = 1,
                            .router_bias = true,
                            .scoring = catalog::RouterScoring::kSigmoid,
                            .routed_scaling = 2.5,
                            .groups = 4,
                            .groups_per_token = 2};
    spec.rope = {.type = catalog::RopeType::kYarn,
                 .factor = 40,
                 .original_max_position = 32,
                 .mscale = 0.707,
                 .mscale_all_dim = 0.707};
  }
  return all;
}

inline std::vector<int32_t> random_tokens(int32_t count, int32_t vocab, uint64_t seed) {
  core::Rng rng(seed);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(rng.below(static_cast<uint64_t>(vocab))));
  }
  return tokens;
}

}  // namespace prony::engine
