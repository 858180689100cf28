#include "prony/catalog/model_check.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string_view>

namespace prony::catalog {
namespace {

class Checker {
 public:
  explicit Checker(const FieldLabels& labels) : labels_(labels) {}

  void integer(std::string_view field, int64_t value, int64_t min, int64_t max) {
    if (value < min || value > max) {
      fail(field, fmt::format("{}", value), fmt::format("a whole number from {} to {}", min, max));
    }
  }
  void number(std::string_view field, double value, double min, double max) {
    if (!(value >= min && value <= max)) {  // written so that NaN fails
      fail(field, fmt::format("{}", value), fmt::format("a number from {} to {}", min, max));
    }
  }
  void divides(std::string_view field, int64_t divisor, std::string_view whole_name,
               int64_t whole) {
    if (error_ || divisor < 1) return;
    if (whole % divisor != 0) {
      fail(field, fmt::format("{}", divisor),
           fmt::format("a divisor of {} ({})", labels_.name(whole_name), whole));
    }
  }
  void fail(std::string_view field, std::string_view found, std::string_view expected) {
    if (error_) return;
    error_ = invalid_argument(fmt::format("{}: {} is {}, expected {}", labels_.where(field),
                                          labels_.name(field), found, expected));
  }
  Result<void> result() const {
    if (error_) return *error_;
    return {};
  }
  bool failed() const { return error_.has_value(); }

 private:
  const FieldLabels& labels_;
  std::optional<Error> error_;
};

void check_shape(const ModelSpec& spec, Checker& check) {
  check.integer("shape.layers", spec.layers, 1, kLayersMax);
  check.integer("shape.hidden", spec.hidden, 1, kHiddenMax);
  check.integer("shape.heads", spec.heads, 1, kHeadsMax);
  check.integer("shape.kv_heads", spec.kv_heads, 1, kHeadsMax);
  check.integer("shape.head_dim", spec.head_dim, 1, kHeadDimMax);
  const bool has_dense_mlp = !spec.moe || spec.moe->dense_layers > 0;
  check.integer("shape.intermediate", spec.intermediate, has_dense_mlp ? 1 : 0, kIntermediateMax);
  check.integer("shape.vocab", spec.vocab, 1, kVocabMax);
  check.integer("shape.max_context_tokens", spec.max_context, 1, kContextMax);
  check.number("shape.rms_epsilon", spec.rms_epsilon, 1e-12, 1e-2);
  check.divides("shape.kv_heads", spec.kv_heads, "shape.heads", spec.heads);
  if (spec.sliding_window) {
    check.integer("attention.sliding_window_tokens", *spec.sliding_window, 1, kContextMax);
  }
  check.integer("attention.sliding_first_layer", spec.sliding_first_layer, 0, kLayersMax);
  if (spec.attention_softcap) {
    check.number("attention.softcap", *spec.attention_softcap, 1e-3, kFactorMax);
  }
  if (spec.logit_softcap)
    check.number("shape.logit_softcap", *spec.logit_softcap, 1e-3, kFactorMax);
  if (spec.attention_scale) {
    check.number("attention.scale", *spec.attention_scale, 1e-6, kFactorMax);
  }
  check.integer("shape.mtp_layers", spec.mtp_layers, 0, kLayersMax);
  for (const int32_t id : spec.eos_ids) {
    check.integer("tokens.eos", id, 0, int64_t{spec.vocab} - 1);
  }
  if (spec.bos_id) check.integer("tokens.bos", *spec.bos_id, 0, int64_t{spec.vocab} - 1);
}

void check_rope(const Rope& rope, int32_t rotated, Checker& check) {
  if (rope.type == RopeType::kNone) return;
  if (rotated % 2 != 0) {
    check.fail("shape.head_dim", fmt::format("{}", rotated),
               "an even number, because RoPE turns pairs");
  }
  check.number("rope.theta", rope.theta, 1, kThetaMax);
  if (rope.type == RopeType::kDefault) return;
  check.number("rope.factor", rope.factor, 1, kFactorMax);
  if (rope.type == RopeType::kLinear) return;
  check.integer("rope.original_max_position_tokens", rope.original_max_position, 1, kContextMax);
  if (rope.type == RopeType::kLlama3) {
    check.number("rope.low_freq_factor", rope.low_freq_factor, 1e-3, kFactorMax);
    check.number("rope.high_freq_factor", rope.high_freq_factor, 1e-3, kFactorMax);
    if (!(rope.high_freq_factor > rope.low_freq_factor)) {
      check.fail("rope.high_freq_factor", fmt::format("{}", rope.high_freq_factor),
                 fmt::format("more than low_freq_factor ({})", rope.low_freq_factor));
    }
    return;
  }
  check.number("rope.beta_fast", rope.beta_fast, 1e-3, kFactorMax);
  check.number("rope.beta_slow", rope.beta_slow, 1e-3, kFactorMax);
  check.number("rope.mscale", rope.mscale, 0, kFactorMax);
  check.number("rope.mscale_all_dim", rope.mscale_all_dim, 0, kFactorMax);
  if (rope.attention_factor) {
    check.number("rope.attention_factor", *rope.attention_factor, 1e-3, kFactorMax);
  }
}

void check_moe(const ModelSpec& spec, Checker& check) {
  const Moe& moe = *spec.moe;
  check.integer("moe.experts", moe.experts, 1, kExpertsMax);
  check.integer("moe.experts_per_token", moe.experts_per_token, 1, moe.experts);
  check.integer("moe.intermediate", moe.intermediate, 1, kIntermediateMax);
  check.integer("moe.shared_intermediate", moe.shared_intermediate, 0, kIntermediateMax);
  check.integer("moe.dense_layers", moe.dense_layers, 0, int64_t{spec.layers} - 1);
  check.number("moe.routed_scaling", moe.routed_scaling, 1e-3, kFactorMax);
  check.integer("moe.groups", moe.groups, 1, moe.experts);
  check.divides("moe.groups", moe.groups, "moe.experts", moe.experts);
  check.integer("moe.groups_per_token", moe.groups_per_token, 1, moe.groups);
  if (moe.shared_gate && moe.shared_intermediate == 0) {
    check.fail("moe.shared_gate", "true", "false without shared experts");
  }
}

void check_mla(const ModelSpec& spec, Checker& check) {
  const Mla& mla = *spec.mla;
  check.integer("mla.q_lora_rank", mla.q_lora_rank, 0, kHiddenMax);
  check.integer("mla.kv_lora_rank", mla.kv_lora_rank, 1, kHiddenMax);
  check.integer("mla.qk_nope_head_dim", mla.qk_nope_head_dim, 1, kHeadDimMax);
  check.integer("mla.qk_rope_head_dim", mla.qk_rope_head_dim, 1, kHeadDimMax);
  check.integer("mla.v_head_dim", mla.v_head_dim, 1, kHeadDimMax);
  const int64_t head_dim = int64_t{mla.qk_nope_head_dim} + mla.qk_rope_head_dim;
  if (spec.head_dim != head_dim) {
    check.fail("shape.head_dim", fmt::format("{}", spec.head_dim),
               fmt::format("{}, the sum of qk_nope_head_dim and qk_rope_head_dim", head_dim));
  }
  if (spec.kv_heads != spec.heads) {
    check.fail("shape.kv_heads", fmt::format("{}", spec.kv_heads),
               fmt::format("the number of heads ({}), because latent attention has no groups",
                           spec.heads));
  }
  if (spec.sliding_window)
    check.fail("attention.sliding_window_tokens", "set", "none with latent attention");
  if (spec.qk_norm || spec.qkv_bias || spec.o_bias || spec.attention_sinks) {
    check.fail("attention.qk_norm", "qk_norm, bias or sinks", "none of them with latent attention");
  }
}

}  // namespace

Result<void> check_model(const ModelSpec& spec, const FieldLabels& labels) {
  Checker check(labels);
  check_shape(spec, check);
  if (spec.moe) check_moe(spec, check);
  if (spec.mla) check_mla(spec, check);
  check_rope(spec.rope, spec.mla ? spec.mla->qk_rope_head_dim : spec.head_dim, check);
  if (check.failed()) return check.result();

  // Each field may be sane and the whole absurd; the product also bounds later int64 arithmetic.
  const double expert_layers = spec.moe ? spec.layers - spec.moe->dense_layers : 0;
  const double mlp = spec.moe
                         ? expert_layers * 3.0 * spec.hidden *
                               (static_cast<double>(spec.moe->experts) * spec.moe->intermediate +
                                spec.moe->shared_intermediate)
                         : 0;
  const double dense = (spec.layers - expert_layers) * 3.0 * spec.hidden * spec.intermediate;
  const double attention = 4.0 * spec.layers * spec.hidden * spec.heads * spec.head_dim;
  const double embedding = 2.0 * spec.vocab * spec.hidden;
  const double total = mlp + dense + attention + embedding;
  if (total > kParametersMax) {
    check.fail("the number of parameters", fmt::format("about {:.3g}", total),
               fmt::format("at most {:g}", kParametersMax));
  }
  return check.result();
}

}  // namespace prony::catalog
