#include "prony/catalog/hf_architectures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "prony/catalog/model_check.hpp"
#include "prony/core/math.hpp"

namespace prony::catalog {
namespace {

// The window of each layer, when the file lists them one by one (transformers from 4.53 on).
void read_layer_types(JsonFields& config, ModelSpec& spec) {
  if (!config.has("layer_types")) return;
  const std::vector<std::string> types = config.texts("layer_types");
  if (types.size() != static_cast<size_t>(spec.layers)) {
    return config.wrong("layer_types", fmt::format("num_hidden_layers ({}) entries", spec.layers));
  }
  std::vector<bool> slides;
  for (const std::string& type : types) {
    if (type != "sliding_attention" && type != "full_attention") {
      return config.wrong("layer_types", "full_attention and sliding_attention only");
    }
    slides.push_back(type == "sliding_attention");
  }
  const auto first =
      static_cast<int32_t>(std::find(slides.begin(), slides.end(), true) - slides.begin());
  if (first == spec.layers) {
    spec.sliding_window.reset();
    return;
  }
  if (!spec.sliding_window) {
    return config.wrong("layer_types", "full_attention only, because no sliding window is set");
  }
  const auto matches = [&](bool alternates, int32_t first_layer) {
    spec.sliding_alternates = alternates;
    spec.sliding_first_layer = first_layer;
    for (int32_t layer = 0; layer < spec.layers; ++layer) {
      if (attention_window(spec, layer).has_value() != slides[static_cast<size_t>(layer)]) {
        return false;
      }
    }
    return true;
  };
  if (matches(false, first) || matches(true, first)) return;
  config.wrong("layer_types",
               "all layers alike, every other layer sliding, or sliding from one on");
}

// Sliding window of Qwen2 and Qwen3: a switch of its own, and a first layer.
void read_qwen_window(JsonFields& config, ModelSpec& spec) {
  if (config.flag_or("use_sliding_window", false)) {
    spec.sliding_window = config.integer_or("sliding_window", 4096, 1, kContextMax);
    const int32_t first = config.integer_or("max_window_layers", 28, 0, kLayersMax);
    if (!config.has("layer_types") && first >= spec.layers) spec.sliding_window.reset();
    if (spec.sliding_window) spec.sliding_first_layer = first;
  }
  read_layer_types(config, spec);
}

// Mixture of Qwen2-MoE and Qwen3-MoE.
void read_qwen_moe(JsonFields& config, ModelSpec& spec) {
  Moe moe;
  const char* experts = config.has("num_experts") ? "num_experts" : "num_local_experts";
  moe.experts = config.integer(experts, 1, kExpertsMax);
  moe.experts_per_token = config.integer("num_experts_per_tok", 1, kExpertsMax);
  moe.intermediate = config.integer("moe_intermediate_size", 1, kIntermediateMax);
  moe.normalize_top_k = config.flag_or("norm_topk_prob", false);
  if (config.integer_or("decoder_sparse_step", 1, 1, kLayersMax) != 1) {
    config.wrong("decoder_sparse_step", "1");
  }
  const std::vector<int32_t> dense = config.integers("mlp_only_layers", 0, kLayersMax);
  for (size_t i = 0; i < dense.size(); ++i) {
    if (dense[i] != static_cast<int32_t>(i)) config.wrong("mlp_only_layers", "the first layers");
  }
  moe.dense_layers = static_cast<int32_t>(dense.size());
  spec.moe = moe;
}

void read_llama(JsonFields& config, ModelSpec& spec) {
  spec.qkv_bias = spec.o_bias = config.flag_or("attention_bias", false);
  spec.mlp_bias = config.flag_or("mlp_bias", false);
}

void read_mistral(JsonFields& config, ModelSpec& spec) {
  // MistralConfig's default is 4096, so absence and null differ.
  if (!config.is_null("sliding_window")) {
    spec.sliding_window = config.integer_or("sliding_window", 4096, 1, kContextMax);
  }
  read_layer_types(config, spec);
}

void read_mixtral(JsonFields& config, ModelSpec& spec) {
  spec.sliding_window = config.maybe_integer("sliding_window", 1, kContextMax);
  Moe moe;
  moe.experts = config.integer("num_local_experts", 1, kExpertsMax);
  moe.experts_per_token = config.integer("num_experts_per_tok", 1, kExpertsMax);
  moe.intermediate = spec.intermediate;
  spec.moe = moe;
}

void read_qwen2(JsonFields& config, ModelSpec& spec) {
  spec.qkv_bias = true;
  read_qwen_window(config, spec);
}

void read_qwen2_moe(JsonFields& config, ModelSpec& spec) {
  spec.qkv_bias = config.flag_or("qkv_bias", true);
  read_qwen_window(config, spec);
  read_qwen_moe(config, spec);
  spec.moe->shared_intermediate =
      config.integer("shared_expert_intermediate_size", 0, kIntermediateMax);
  spec.moe->shared_gate = spec.moe->shared_intermediate > 0;
}

void read_qwen3(JsonFields& config, ModelSpec& spec) {
  spec.qk_norm = true;
  spec.qkv_bias = spec.o_bias = config.flag_or("attention_bias", false);
  read_qwen_window(config, spec);
}

void read_qwen3_moe(JsonFields& config, ModelSpec& spec) {
  spec.qk_norm = true;
  spec.qkv_bias = spec.o_bias = config.flag_or("attention_bias", false);
  if (config.flag_or("use_sliding_window", false)) {  // in every layer
    spec.sliding_window = config.integer_or("sliding_window", 4096, 1, kContextMax);
  }
  read_layer_types(config, spec);
  read_qwen_moe(config, spec);
}

void read_gemma2(JsonFields& config, ModelSpec& spec) {
  spec.tied_embeddings = config.flag_or("tie_word_embeddings", true);
  spec.sandwich_norms = spec.norm_plus_one = spec.scaled_embedding = true;
  spec.qkv_bias = spec.o_bias = config.flag_or("attention_bias", false);
  const double scalar = config.number_or("query_pre_attn_scalar", 256, 1e-3, kFactorMax);
  spec.attention_scale = 1 / core::math::sqrt(scalar);
  const auto softcap = [&config](const char* key, double fallback) -> std::optional<double> {
    if (config.is_null(key)) return std::nullopt;
    return config.number_or(key, fallback, 1e-3, kFactorMax);
  };
  spec.attention_softcap = softcap("attn_logit_softcapping", 50);
  spec.logit_softcap = softcap("final_logit_softcapping", 30);
  if (!config.is_null("sliding_window")) {
    spec.sliding_window = config.integer_or("sliding_window", 4096, 1, kContextMax);
    spec.sliding_alternates = true;
  }
  read_layer_types(config, spec);
}

void read_deepseek(JsonFields& config, ModelSpec& spec) {
  const bool v3 = spec.architecture == "DeepseekV3ForCausalLM";
  Mla mla;
  mla.q_lora_rank = config.integer_or("q_lora_rank", 0, 0, kHiddenMax);
  mla.kv_lora_rank = config.integer("kv_lora_rank", 1, kHiddenMax);
  mla.qk_nope_head_dim = config.integer("qk_nope_head_dim", 1, kHeadDimMax);
  mla.qk_rope_head_dim = config.integer("qk_rope_head_dim", 1, kHeadDimMax);
  mla.v_head_dim = config.integer("v_head_dim", 1, kHeadDimMax);
  spec.head_dim = mla.qk_nope_head_dim + mla.qk_rope_head_dim;
  spec.mla = mla;
  if (config.flag_or("attention_bias", false)) config.wrong("attention_bias", "false");

  Moe moe;
  moe.experts = config.integer("n_routed_experts", 1, kExpertsMax);
  moe.experts_per_token = config.integer("num_experts_per_tok", 1, kExpertsMax);
  moe.intermediate = config.integer("moe_intermediate_size", 1, kIntermediateMax);
  const int64_t shared =
      int64_t{config.integer_or("n_shared_experts", 0, 0, kExpertsMax)} * moe.intermediate;
  if (shared > kIntermediateMax) {
    config.wrong("n_shared_experts",
                 fmt::format("shared experts of at most {} in all", kIntermediateMax));
  } else {
    moe.shared_intermediate = static_cast<int32_t>(shared);
  }
  moe.dense_layers = config.integer_or("first_k_dense_replace", 0, 0, kLayersMax);
  moe.normalize_top_k = config.flag_or("norm_topk_prob", v3);
  moe.routed_scaling = config.number_or("routed_scaling_factor", v3 ? 2.5 : 1, 1e-3, kFactorMax);
  moe.groups = config.integer_or("n_group", 1, 1, kExpertsMax);
  moe.groups_per_token = config.integer_or("topk_group", 1, 1, kExpertsMax);
  const std::string scoring =
      config.maybe_text("scoring_func").value_or(v3 ? "sigmoid" : "softmax");
  if (scoring == "sigmoid") {
    moe.scoring = RouterScoring::kSigmoid;
  } else if (scoring != "softmax") {
    config.wrong("scoring_func", "softmax or sigmoid");
  }
  const std::string method = config.maybe_text("topk_method").value_or(v3 ? "noaux_tc" : "greedy");
  if (method == "greedy") {
    moe.groups = moe.groups_per_token = 1;  // plain top-k, whatever n_group says
  } else if (method == "noaux_tc") {
    moe.router_bias = true;
  } else if (method != "group_limited_greedy") {
    config.wrong("topk_method", "greedy, group_limited_greedy or noaux_tc");
  }
  if (config.integer_or("moe_layer_freq", 1, 1, kLayersMax) != 1) {
    config.wrong("moe_layer_freq", "1");
  }
  spec.moe = moe;
  spec.mtp_layers = config.integer_or("num_nextn_predict_layers", 0, 0, kLayersMax);
}

void read_gpt_oss(JsonFields& config, ModelSpec& spec) {
  spec.qkv_bias = spec.o_bias = config.flag_or("attention_bias", true);
  spec.attention_sinks = true;
  spec.activation = Activation::kSwigluClamp;
  if (!config.is_null("sliding_window")) {
    spec.sliding_window = config.integer_or("sliding_window", 128, 1, kContextMax);
    spec.sliding_alternates = true;
  }
  read_layer_types(config, spec);
  Moe moe;
  moe.experts = config.integer("num_local_experts", 1, kExpertsMax);
  moe.experts_per_token = config.integer("num_experts_per_tok", 1, kExpertsMax);
  moe.intermediate = spec.intermediate;
  moe.router_bias = moe.expert_bias = true;
  spec.moe = moe;
  // GptOssConfig's default is a whole YaRN set; no published file leaves it out.
  if (!config.has("rope_scaling") && !config.has("rope_parameters")) {
    config.wrong("rope_scaling", "the parameters of yarn");
  }
}

constexpr HfArchitecture kArchitectures[] = {
    {"DeepseekV2ForCausalLM", read_deepseek},
    {"DeepseekV3ForCausalLM", read_deepseek},
    {"Gemma2ForCausalLM", read_gemma2, 10'000, "hidden_activation"},
    {"GptOssForCausalLM", read_gpt_oss, 150'000, nullptr},
    {"LlamaForCausalLM", read_llama},
    {"MistralForCausalLM", read_mistral},
    {"MixtralForCausalLM", read_mixtral, 1'000'000},
    {"Qwen2ForCausalLM", read_qwen2},
    {"Qwen2MoeForCausalLM", read_qwen2_moe},
    {"Qwen3ForCausalLM", read_qwen3},
    {"Qwen3MoeForCausalLM", read_qwen3_moe},
};

}  // namespace

std::span<const HfArchitecture> hf_architectures() {
  return kArchitectures;
}

}  // namespace prony::catalog
