#include "prony/catalog/model_spec.hpp"

#include "prony/core/check.hpp"

namespace prony::catalog {

std::optional<int32_t> attention_window(const ModelSpec& spec, int32_t layer) {
  PRONY_CHECK(layer >= 0 && layer < spec.layers, "layer out of range");
  if (!spec.sliding_window || layer < spec.sliding_first_layer) return std::nullopt;
  if (spec.sliding_alternates && layer % 2 == 1) return std::nullopt;
  return spec.sliding_window;
}

int32_t sliding_layers(const ModelSpec& spec) {
  int32_t count = 0;
  for (int32_t layer = 0; layer < spec.layers; ++layer) {
    if (attention_window(spec, layer)) ++count;
  }
  return count;
}

}  // namespace prony::catalog
