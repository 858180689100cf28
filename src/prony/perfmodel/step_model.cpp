#include "prony/perfmodel/step_model.hpp"

#include "prony/core/check.hpp"
#include "prony/core/math.hpp"
#include "prony/perfmodel/step_builder.hpp"

namespace prony::perfmodel {

std::vector<LayerGroup> layer_groups(const catalog::ModelSpec& spec) {
  std::vector<LayerGroup> groups;
  for (int32_t layer = 0; layer < spec.layers; ++layer) {
    const auto window = catalog::attention_window(spec, layer);
    const bool moe = spec.moe && layer >= spec.moe->dense_layers;
    LayerGroup* same = nullptr;
    for (LayerGroup& group : groups) {
      if (group.window == window && group.moe == moe) same = &group;
    }
    if (same == nullptr) {
      groups.push_back({.first_layer = layer, .count = 0, .window = window, .moe = moe});
      same = &groups.back();
    }
    ++same->count;
  }
  return groups;
}

double expected_experts(int32_t experts, int32_t experts_per_token, double tokens) {
  PRONY_CHECK(experts_per_token >= 1 && experts_per_token <= experts && tokens >= 0,
              "experts per token must be between 1 and the number of experts");
  // A given expert is missed by one token with probability 1 - k/E, by all of them with its power.
  const double missed = 1 - static_cast<double>(experts_per_token) / experts;
  return experts * (1 - core::math::pow(missed, tokens));
}

StepModel::StepModel(const catalog::ModelSpec& spec, const Precision& precision)
    : spec_(spec), precision_(precision), groups_(layer_groups(spec)) {}

void StepModel::operators(const StepShape& shape, std::vector<Operator>* operators) const {
  operators->clear();
  if (shape.empty()) return;
  StepBuilder builder(spec_, precision_, shape, operators);
  builder.embed();
  for (size_t i = 0; i < groups_.size(); ++i) {
    builder.layers(groups_[i], static_cast<int32_t>(i));
  }
  builder.head();
}

std::vector<Operator> StepModel::operators(const StepShape& shape) const {
  std::vector<Operator> list;
  operators(shape, &list);
  return list;
}

}  // namespace prony::perfmodel
