#include "prony/catalog/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/catalog/hf_architectures.hpp"
#include "prony/catalog/hf_rope.hpp"
#include "prony/catalog/json_fields.hpp"
#include "prony/catalog/model_check.hpp"

namespace prony::catalog {
namespace {

constexpr int64_t kIdMax = kVocabMax - 1;

// Fields every architecture has.
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

// What the file says comes first: hidden / heads is wrong for Qwen3 and Mistral Nemo.
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

const HfArchitecture* find_architecture(JsonFields& config) {
  const std::vector<std::string> names = config.texts("architectures");
  if (names.size() == 1) {
    for (const HfArchitecture& architecture : hf_architectures()) {
      if (names[0] == architecture.name) return &architecture;
    }
  }
  config.wrong("architectures", fmt::format("one of {}", fmt::join(known_architectures(), ", ")));
  return nullptr;
}

// The file as an object.
Result<core::Json> parse_object(std::string_view text, std::string_view name) {
  auto json = core::parse_json(text, name);
  if (json.ok() && !json->is_object()) {
    return invalid_argument(fmt::format("{}: the top is no object, expected {{...}}", name));
  }
  return json;
}

}  // namespace

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const HfArchitecture& architecture : hf_architectures()) names.push_back(architecture.name);
  return names;
}

Result<ModelSpec> parse_hf_config(std::string_view text, std::string_view name) {
  const auto json = parse_object(text, name);
  if (!json) return json.error();
  JsonErrors errors(name);
  JsonFields config(*json, "", errors);
  ModelSpec spec;
  const HfArchitecture* architecture = find_architecture(config);
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
  const auto json = parse_object(text, name);
  if (!json) return json.error();
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
