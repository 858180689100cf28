#include "prony/catalog/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/catalog/hf_rope.hpp"
#include "prony/catalog/json_fields.hpp"
#include "prony/catalog/model_check.hpp"
#include "prony/core/math.hpp"

namespace prony::catalog {
namespace {

constexpr int64_t kIdMax = kVocabMax - 1;

// Fields every architecture has, with `head_dim` first: hidden / heads is wrong for Qwen3 and
// Mistral Nemo (TensorRT-LLM issue 5912).
void read_common(JsonFields& config, ModelSpec& spec) {
  spec.layers = config.integer("num_hidden_layers", 1, kLayersMax);
  spec.hidden = config.integer("hidden_size", 1, kHiddenMax);
  spec.heads = config.integer("num_attention_heads", 1, kHeadsMax);
  spec.kv_heads = config.integer_or("num_key_value_heads", spec.heads, 1, kHeadsMax);
  spec.intermediate = config.integer("intermediate_size", 1, kIntermediateMax);
  spec.vocab = config.integer("vocab_size", 1, kVocabMax);
  spec.max_context = config.integer("max_position_embeddings", 1, kContextMax);
  spec.rms_epsilon = config.number_or("rms_norm_eps", 1e-6, 1e-12, 1e-2);
  spec.tied_embeddings = config.flag_or("tie_word_embeddings", false);
  spec.eos_ids = config.integers("eos_token_id", 0, kIdMax);
  spec.bos_id = config.maybe_integer("bos_token_id", 0, kIdMax);
}

void read_head_dim(JsonFields& config, ModelSpec& spec) {
  if (config.has("head_dim")) {
    spec.head_dim = config.integer("head_dim", 1, kHeadDimMax);
  } else if (spec.hidden % spec.heads == 0) {
    spec.head_dim = spec.hidden / spec.heads;
  } else {
    config.wrong("hidden_size", fmt::format("a multiple of num_attention_heads ({}), because "
                                            "head_dim is not given",
                                            spec.heads));
  }
}

void read_activation(JsonFields& config, const char* key, ModelSpec& spec) {
  const auto name = config.maybe_text(key);
  if (!name || *name == "silu" || *name == "swish") {
    spec.activation = Activation::kSilu;
  } else if (*name == "gelu_pytorch_tanh") {
    spec.activation = Activation::kGeluTanh;
  } else {
    config.wrong(key, "silu or gelu_pytorch_tanh");
  }
}

void read_weight_format(JsonFields& config, ModelSpec& spec) {
  // transformers 5 renamed torch_dtype.
  const char* key = config.has("dtype") ? "dtype" : "torch_dtype";
  const std::string dtype = config.maybe_text(key).value_or("bfloat16");
  if (dtype == "bfloat16" || dtype == "auto") {
    spec.weight_format = WeightFormat::kBf16;
  } else if (dtype == "float16") {
    spec.weight_format = WeightFormat::kF16;
  } else if (dtype == "float32") {
    spec.weight_format = WeightFormat::kF32;
  } else {
    config.wrong(key, "bfloat16, float16 or float32");
  }
  auto quantization = config.maybe_object("quantization_config");
  if (!quantization) return;
  const std::string method = quantization->maybe_text("quant_method").value_or("");
  if (method == "mxfp4") {
    spec.weight_format = WeightFormat::kMxfp4Experts;
  } else if (method == "fp8") {
    spec.weight_format = WeightFormat::kFp8Block128;
    if (quantization->integers("weight_block_size", 1, kHiddenMax) !=
        std::vector<int32_t>{128, 128}) {
      quantization->wrong("weight_block_size", "[128, 128]");
    }
  } else {
    quantization->wrong("quant_method", "fp8 or mxfp4");
  }
}

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

// Canonical field names whose key is not simply their last part.
struct Alias {
  std::string_view field, key;
};
constexpr Alias kAliases[] = {
    {"shape.layers", "num_hidden_layers"},
    {"shape.hidden", "hidden_size"},
    {"shape.heads", "num_attention_heads"},
    {"shape.kv_heads", "num_key_value_heads"},
    {"shape.intermediate", "intermediate_size"},
    {"shape.vocab", "vocab_size"},
    {"shape.max_context_tokens", "max_position_embeddings"},
    {"attention.sliding_window_tokens", "sliding_window"},
    {"tokens.eos", "eos_token_id"},
    {"tokens.bos", "bos_token_id"},
    {"moe.experts", "the number of experts"},
    {"moe.experts_per_token", "num_experts_per_tok"},
    {"moe.intermediate", "moe_intermediate_size"},
    {"moe.dense_layers", "the number of dense layers"},
    {"moe.groups", "n_group"},
    {"moe.groups_per_token", "topk_group"},
};

class HfLabels : public FieldLabels {
 public:
  explicit HfLabels(std::string_view file) : file_(file) {}
  std::string name(std::string_view field) const override {
    for (const Alias& alias : kAliases) {
      if (alias.field == field) return std::string(alias.key);
    }
    const auto dot = field.find('.');
    return std::string(dot == std::string_view::npos ? field : field.substr(dot + 1));
  }
  std::string where(std::string_view) const override { return std::string(file_); }

 private:
  std::string_view file_;
};

struct Architecture {
  std::string_view name;
  void (*read)(JsonFields&, ModelSpec&);
  double rope_theta = 10'000;  // where the file has none
  const char* activation_key = "hidden_act";
};
constexpr Architecture kArchitectures[] = {
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

const Architecture* find_architecture(JsonFields& config) {
  const std::vector<std::string> names = config.texts("architectures");
  if (names.size() == 1) {
    for (const Architecture& architecture : kArchitectures) {
      if (names[0] == architecture.name) return &architecture;
    }
  }
  config.wrong("architectures", fmt::format("one of {}", fmt::join(known_architectures(), ", ")));
  return nullptr;
}

}  // namespace

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const Architecture& architecture : kArchitectures) names.push_back(architecture.name);
  return names;
}

Result<ModelSpec> parse_hf_config(std::string_view text, std::string_view name) {
  const auto json = core::parse_json(text, name);
  if (!json) return json.error();
  if (!json->is_object()) {
    return invalid_argument(fmt::format("{}: the top is no object, expected {{...}}", name));
  }
  JsonErrors errors(name);
  JsonFields config(*json, "", errors);
  ModelSpec spec;
  const Architecture* architecture = find_architecture(config);
  if (architecture == nullptr) return errors.first();
  spec.architecture = architecture->name;
  spec.ref = name;
  read_common(config, spec);
  if (!errors.empty()) return errors.first();
  if (architecture->activation_key != nullptr) {
    const char* key = architecture->activation_key;
    read_activation(config, config.has(key) ? key : "hidden_act", spec);
  }
  read_weight_format(config, spec);
  architecture->read(config, spec);
  if (!spec.mla) read_head_dim(config, spec);
  read_hf_rope(config, architecture->rope_theta, spec);
  if (!errors.empty()) return errors.first();
  if (auto checked = check_model(spec, HfLabels(name)); !checked) return checked.error();
  return spec;
}

Result<void> add_generation_config(std::string_view text, std::string_view name, ModelSpec& spec) {
  const auto json = core::parse_json(text, name);
  if (!json) return json.error();
  if (!json->is_object()) {
    return invalid_argument(fmt::format("{}: the top is no object, expected {{...}}", name));
  }
  JsonErrors errors(name);
  JsonFields config(*json, "", errors);
  for (const int32_t id : config.integers("eos_token_id", 0, int64_t{spec.vocab} - 1)) {
    if (std::find(spec.eos_ids.begin(), spec.eos_ids.end(), id) == spec.eos_ids.end()) {
      spec.eos_ids.push_back(id);
    }
  }
  if (!errors.empty()) return errors.first();
  return {};
}

}  // namespace prony::catalog
