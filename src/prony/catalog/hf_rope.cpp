#include "prony/catalog/hf_rope.hpp"

#include "prony/catalog/model_check.hpp"

namespace prony::catalog {
namespace {

void refuse_partial_rotation(JsonFields& fields) {
  if (fields.number_or("partial_rotary_factor", 1, 0, 1) < 1) {
    fields.wrong("partial_rotary_factor", "1");
  }
}

void read_yarn(JsonFields& scaling, const ModelSpec& spec, Rope& rope) {
  rope.type = RopeType::kYarn;
  rope.factor = scaling.number("factor", 1, kFactorMax);
  rope.original_max_position =
      scaling.integer_or("original_max_position_embeddings", spec.max_context, 1, kContextMax);
  rope.beta_fast = scaling.number_or("beta_fast", 32, 1e-3, kFactorMax);
  rope.beta_slow = scaling.number_or("beta_slow", 1, 1e-3, kFactorMax);
  rope.truncate = scaling.flag_or("truncate", true);
  rope.attention_factor = scaling.maybe_number("attention_factor", 1e-3, kFactorMax);
  rope.mscale = scaling.number_or("mscale", 0, 0, kFactorMax);
  rope.mscale_all_dim = scaling.number_or("mscale_all_dim", 0, 0, kFactorMax);
}

}  // namespace

void read_hf_rope(JsonFields& config, double default_theta, ModelSpec& spec) {
  Rope rope;
  refuse_partial_rotation(config);
  rope.theta = config.number_or("rope_theta", default_theta, 1, kThetaMax);
  const bool new_style = config.has("rope_parameters");
  auto scaling = config.maybe_object(new_style ? "rope_parameters" : "rope_scaling");
  if (!scaling) {
    spec.rope = rope;
    return;
  }
  for (const char* nested : {"full_attention", "sliding_attention"}) {
    if (scaling->has(nested)) scaling->wrong(nested, "one set of parameters for all layers");
  }
  refuse_partial_rotation(*scaling);
  rope.theta = scaling->number_or("rope_theta", rope.theta, 1, kThetaMax);
  const char* key = scaling->has("rope_type") ? "rope_type" : "type";
  // The new object is always there and may leave the type out; an old one without type is broken.
  const std::string type = scaling->maybe_text(key).value_or(new_style ? "default" : "");
  if (type == "default") {
    rope.type = RopeType::kDefault;
  } else if (type == "linear") {
    rope.type = RopeType::kLinear;
    rope.factor = scaling->number("factor", 1, kFactorMax);
  } else if (type == "llama3") {
    rope.type = RopeType::kLlama3;
    rope.factor = scaling->number("factor", 1, kFactorMax);
    rope.low_freq_factor = scaling->number("low_freq_factor", 1e-3, kFactorMax);
    rope.high_freq_factor = scaling->number("high_freq_factor", 1e-3, kFactorMax);
    rope.original_max_position =
        scaling->integer("original_max_position_embeddings", 1, kContextMax);
  } else if (type == "yarn") {
    read_yarn(*scaling, spec, rope);
  } else {
    scaling->wrong(key, "default, linear, llama3 or yarn");
  }
  spec.rope = rope;
}

}  // namespace prony::catalog
