#include "prony/catalog/model_file.hpp"

#include <fmt/format.h>

#include "prony/catalog/hf_config.hpp"
#include "prony/catalog/model_check.hpp"
#include "prony/catalog/yaml_map.hpp"

namespace prony::catalog {
namespace {

constexpr int64_t kIdMax = kVocabMax - 1;

void read_shape(YamlMap& shape, ModelSpec& spec) {
  constexpr std::string_view kActivations[] = {"silu", "gelu-tanh", "swiglu-clamp"};
  spec.layers = shape.integer("layers", 1, kLayersMax);
  spec.hidden = shape.integer("hidden", 1, kHiddenMax);
  spec.heads = shape.integer("heads", 1, kHeadsMax);
  spec.kv_heads = shape.integer("kv_heads", 1, kHeadsMax);
  spec.head_dim = shape.integer("head_dim", 1, kHeadDimMax);
  spec.intermediate = shape.integer("intermediate", 1, kIntermediateMax);
  spec.vocab = shape.integer("vocab", 1, kVocabMax);
  spec.max_context = shape.integer("max_context_tokens", 1, kContextMax);
  spec.rms_epsilon = shape.number("rms_epsilon", 1e-12, 1e-2);
  spec.tied_embeddings = shape.flag("tied_embeddings", false);
  spec.activation = static_cast<Activation>(shape.word("activation", kActivations));
  spec.mlp_bias = shape.flag("mlp_bias", false);
  spec.sandwich_norms = shape.flag("sandwich_norms", false);
  spec.norm_plus_one = shape.flag("norm_plus_one", false);
  spec.scaled_embedding = shape.flag("scaled_embedding", false);
  spec.logit_softcap = shape.maybe_number("logit_softcap", 1e-3, kFactorMax);
  spec.mtp_layers = shape.maybe_integer("mtp_layers", 0, kLayersMax).value_or(0);
}

void read_attention(YamlMap& attention, ModelSpec& spec) {
  spec.qkv_bias = attention.flag("qkv_bias", false);
  spec.o_bias = attention.flag("o_bias", false);
  spec.qk_norm = attention.flag("qk_norm", false);
  spec.attention_sinks = attention.flag("sinks", false);
  spec.attention_scale = attention.maybe_number("scale", 1e-6, kFactorMax);
  spec.attention_softcap = attention.maybe_number("softcap", 1e-3, kFactorMax);
  spec.sliding_window = attention.maybe_integer("sliding_window_tokens", 1, kContextMax);
  if (spec.sliding_window) {
    spec.sliding_alternates = attention.flag("sliding_alternates", false);
    spec.sliding_first_layer =
        attention.maybe_integer("sliding_first_layer", 0, kLayersMax).value_or(0);
  }
}

void read_rope(YamlMap& map, Rope& rope) {
  constexpr std::string_view kTypes[] = {"none", "default", "linear", "llama3", "yarn"};
  rope.type = static_cast<RopeType>(map.word("type", kTypes));
  if (rope.type == RopeType::kNone) return;
  rope.theta = map.number("theta", 1, kThetaMax);
  if (rope.type == RopeType::kDefault) return;
  rope.factor = map.number("factor", 1, kFactorMax);
  if (rope.type == RopeType::kLinear) return;
  rope.original_max_position = map.integer("original_max_position_tokens", 1, kContextMax);
  if (rope.type == RopeType::kLlama3) {
    rope.low_freq_factor = map.number("low_freq_factor", 1e-3, kFactorMax);
    rope.high_freq_factor = map.number("high_freq_factor", 1e-3, kFactorMax);
    return;
  }
  rope.beta_fast = map.number("beta_fast", 1e-3, kFactorMax);
  rope.beta_slow = map.number("beta_slow", 1e-3, kFactorMax);
  rope.truncate = map.flag("truncate", true);
  rope.attention_factor = map.maybe_number("attention_factor", 1e-3, kFactorMax);
  rope.mscale = map.maybe_number("mscale", 0, kFactorMax).value_or(0);
  rope.mscale_all_dim = map.maybe_number("mscale_all_dim", 0, kFactorMax).value_or(0);
}

Moe read_moe(YamlMap& map) {
  constexpr std::string_view kScorings[] = {"softmax", "sigmoid"};
  Moe moe;
  moe.experts = map.integer("experts", 1, kExpertsMax);
  moe.experts_per_token = map.integer("experts_per_token", 1, kExpertsMax);
  moe.intermediate = map.integer("intermediate", 1, kIntermediateMax);
  moe.shared_intermediate =
      map.maybe_integer("shared_intermediate", 0, kIntermediateMax).value_or(0);
  moe.dense_layers = map.maybe_integer("dense_layers", 0, kLayersMax).value_or(0);
  moe.normalize_top_k = map.flag("normalize_top_k", true);
  moe.shared_gate = map.flag("shared_gate", false);
  moe.router_bias = map.flag("router_bias", false);
  moe.expert_bias = map.flag("expert_bias", false);
  moe.scoring = static_cast<RouterScoring>(map.word("scoring", kScorings));
  moe.routed_scaling = map.maybe_number("routed_scaling", 1e-3, kFactorMax).value_or(1);
  moe.groups = map.maybe_integer("groups", 1, kExpertsMax).value_or(1);
  moe.groups_per_token = map.maybe_integer("groups_per_token", 1, kExpertsMax).value_or(1);
  return moe;
}

Mla read_mla(YamlMap& map) {
  Mla mla;
  mla.q_lora_rank = map.integer("q_lora_rank", 0, kHiddenMax);
  mla.kv_lora_rank = map.integer("kv_lora_rank", 1, kHiddenMax);
  mla.qk_nope_head_dim = map.integer("qk_nope_head_dim", 1, kHeadDimMax);
  mla.qk_rope_head_dim = map.integer("qk_rope_head_dim", 1, kHeadDimMax);
  mla.v_head_dim = map.integer("v_head_dim", 1, kHeadDimMax);
  return mla;
}

void read_published(YamlMap& map, const YamlMap& refs, ModelSpec& spec) {
  constexpr Unit kCounts[] = {{"parameters", 1}, {"M parameters", 1e6}, {"B parameters", 1e9}};
  spec.published_parameters = map.quantity("total", kCounts, 0, kParametersMax, refs).value;
  if (map.has("active")) {
    spec.published_active_parameters =
        map.quantity("active", kCounts, 0, kParametersMax, refs).value;
  }
}

// Fields by the line they stand on; a field left out by the line of its section.
class FileLabels : public FieldLabels {
 public:
  FileLabels(const YamlValue& document, std::string_view file) : document_(document), file_(file) {}
  std::string where(std::string_view field) const override {
    int line = document_.line;
    const auto dot = field.find('.');
    if (const YamlEntry* section = document_.find(field.substr(0, dot))) {
      line = section->line;
      if (dot != std::string_view::npos) {
        if (const YamlEntry* entry = section->value.find(field.substr(dot + 1))) line = entry->line;
      }
    }
    return fmt::format("{}:{}", file_, line);
  }

 private:
  const YamlValue& document_;
  std::string_view file_;
};

}  // namespace

Result<ModelSpec> parse_model_file(std::string_view text, std::string_view name) {
  constexpr std::string_view kSchemas[] = {"prony.model/1"};
  constexpr std::string_view kFormats[] = {"f32", "f16", "bf16", "fp8-block128", "mxfp4-experts"};
  const auto document = parse_yaml(text, name);
  if (!document) return document.error();
  YamlErrors errors(name);
  YamlMap top(*document, "", errors);
  ModelSpec spec;
  top.word("schema", kSchemas);
  spec.id = top.text("id");
  const std::vector<std::string_view> architectures = known_architectures();
  spec.architecture = architectures[top.word("architecture", architectures)];
  if (top.has("huggingface_id")) spec.huggingface_id = top.text("huggingface_id");
  const YamlMap refs = top.refs("refs");

  // Every section says where its numbers come from; the shape's is the spec's.
  const auto section = [&refs](YamlMap map, auto&& read) {
    std::string ref = map.ref(refs);
    read(map);
    map.done();
    return ref;
  };
  spec.ref = section(top.map("shape"), [&](YamlMap& map) { read_shape(map, spec); });
  section(top.map("rope"), [&](YamlMap& map) { read_rope(map, spec.rope); });
  section(top.map("weights"), [&](YamlMap& map) {
    spec.weight_format = static_cast<WeightFormat>(map.word("format", kFormats));
  });
  section(top.map("tokens"), [&](YamlMap& map) {
    spec.bos_id = map.maybe_integer("bos", 0, kIdMax);
    spec.eos_ids = map.integers("eos", 0, kIdMax);
  });
  if (auto map = top.maybe_map("attention")) {
    section(*map, [&](YamlMap& fields) { read_attention(fields, spec); });
  }
  if (auto map = top.maybe_map("moe")) {
    section(*map, [&](YamlMap& fields) { spec.moe = read_moe(fields); });
  }
  if (auto map = top.maybe_map("mla")) {
    section(*map, [&](YamlMap& fields) { spec.mla = read_mla(fields); });
  }
  if (auto map = top.maybe_map("published")) {
    read_published(*map, refs, spec);
    map->done();
  }
  top.done();
  if (!errors.empty()) return errors.first();
  if (auto checked = check_model(spec, FileLabels(*document, name)); !checked) {
    return checked.error();
  }
  return spec;
}

}  // namespace prony::catalog
