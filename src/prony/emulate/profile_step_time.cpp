#include "prony/emulate/profile_step_time.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/perfmodel/step_model.hpp"

namespace prony::emulate {
namespace {

constexpr size_t kKnownTokens = 1 << 16;

struct Part {
  std::string_view name;
  double per_layer = 0, per_dense_layer = 0, once = 0;
  bool needed = true;
};

/// What a step runs of each layer that the profiler names. Some models have no norm of queries.
constexpr Part kParts[] = {{.name = "embedding", .once = 1},
                           {.name = "layernorm", .per_layer = 2},
                           {.name = "qkv_proj", .per_layer = 1},
                           {.name = "qk_norm", .per_layer = 1, .needed = false},
                           {.name = "rotary_emb", .per_layer = 1},
                           {.name = "o_proj", .per_layer = 1},
                           {.name = "gate_up_proj", .per_dense_layer = 1},
                           {.name = "act_fn", .per_dense_layer = 1},
                           {.name = "down_proj", .per_dense_layer = 1},
                           {.name = "final_layernorm", .once = 1}};

}  // namespace

ProfileStepTime::ProfileStepTime(ProfileTables tables, const catalog::ModelSpec& model,
                                 double step_s, double sequence_s)
    : tables_(std::move(tables)),
      layers_(model.layers),
      step_us_(step_s * 1e6),
      sequence_us_(sequence_s * 1e6) {
  if (model.moe) {
    experts_ = model.moe->experts;
    experts_per_token_ = model.moe->experts_per_token;
    mixture_layers_ = layers_ - model.moe->dense_layers;
  }
}

Result<std::unique_ptr<ProfileStepTime>> ProfileStepTime::load(const std::string& path,
                                                               const catalog::ModelSpec& model,
                                                               double step_s, double sequence_s) {
  auto tables = read_profile(path);
  if (!tables) return tables.error();
  std::unique_ptr<ProfileStepTime> out(
      new ProfileStepTime(std::move(tables).value(), model, step_s, sequence_s));
  const auto& dense = out->tables_.dense;
  const double dense_layers = out->layers_ - out->mixture_layers_;
  for (const Part& part : kParts) {
    const double times =
        part.once + part.per_layer * out->layers_ + part.per_dense_layer * dense_layers;
    const auto found = dense.find(part.name);
    if (found != dense.end()) {
      if (times > 0) out->dense_.emplace_back(&found->second, times);
    } else if (times > 0 && part.needed) {
      return invalid_argument(fmt::format("{}: found no layer {} in dense.csv, which {} needs",
                                          path, part.name, model.id));
    }
  }
  for (const auto& [name, line] : dense) {
    const bool known = std::any_of(std::begin(kParts), std::end(kParts),
                                   [&](const Part& part) { return part.name == name; });
    if (!known) {
      return invalid_argument(
          fmt::format("{}: found the layer {} in dense.csv, expected those of a transformer: "
                      "embedding, layernorm, qkv_proj, qk_norm, rotary_emb, o_proj, gate_up_proj, "
                      "act_fn, down_proj, final_layernorm",
                      path, name));
    }
  }
  if (out->mixture_layers_ > 0 && out->tables_.moe.empty()) {
    return invalid_argument(
        fmt::format("{}: found no moe.csv, which {} needs: it is a mixture", path, model.id));
  }
  return out;
}

double ProfileStepTime::computed_dense_us(double tokens) const {
  double sum = 0;
  for (const auto& [line, times] : dense_) sum += times * line->at(tokens);
  if (mixture_layers_ > 0) {
    const double experts = perfmodel::expected_experts(experts_, experts_per_token_, tokens);
    sum += mixture_layers_ * tables_.moe.at(tokens, experts);
  }
  return sum;
}

double ProfileStepTime::dense_us(int64_t tokens) {
  const auto index = static_cast<size_t>(tokens);
  if (index >= kKnownTokens) return computed_dense_us(static_cast<double>(tokens));
  if (index >= known_us_.size()) known_us_.resize(index + 1, -1.0);
  if (known_us_[index] < 0) known_us_[index] = computed_dense_us(static_cast<double>(tokens));
  return known_us_[index];
}

// The prefills of a step share a launch: one floor, then what each adds above it.
double ProfileStepTime::attention_us(const StepLoad& load) const {
  const AttentionTables& tables = tables_.attention;
  double decode = 0, prefill = 0, chunk = 0, context = 0;
  const double rows = static_cast<double>(load.decodes);
  const double mean = load.decodes > 0 ? static_cast<double>(load.decode_keys) / rows : 0;
  if (load.decodes > 0) decode = tables.decode.at(rows, mean);
  const double floor = tables.prefill.rows().begin()->second.points().front().second;
  for (const StepLoad::Prefill& one : load.prefills) {
    const auto tokens = static_cast<double>(one.new_tokens);
    const double alone = tables.prefill.at(tokens, static_cast<double>(one.context));
    prefill += prefill == 0 ? alone : std::max(0.0, alone - floor);
    chunk += tokens;
    context = std::max(context, static_cast<double>(one.context));
  }
  if (load.decodes == 0 || load.prefills.empty()) return decode + prefill;
  return (decode + prefill) * tables.ratio({chunk, context, rows, mean});
}

core::Nanos ProfileStepTime::step_ns(const StepLoad& load) {
  if (load.rows() == 0) return 0;
  double us = step_us_ + sequence_us_ * static_cast<double>(load.rows());
  us += dense_us(load.tokens()) + layers_ * attention_us(load);
  if (load.samples > 0) {
    for (const auto& [name, line] : tables_.per_sequence) {
      us += line.at(static_cast<double>(load.samples));
    }
  }
  return static_cast<core::Nanos>(us * 1e3 + 0.5);
}

}  // namespace prony::emulate
