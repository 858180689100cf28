// The architectures of Hugging Face config.json files that are understood: what each reads beyond
// the common fields, and its defaults where they differ. Another family is one more reader here.
// Thread safety: pure functions. Source: transformers' configuration classes.
#pragma once
#include <span>
#include <string_view>

#include "prony/catalog/json_fields.hpp"
#include "prony/catalog/model_spec.hpp"

namespace prony::catalog {

struct HfArchitecture {
  std::string_view name;  // as in `architectures`
  /// Fills what is its own; the common fields are read already. Errors go to the JsonErrors.
  void (*read)(JsonFields& config, ModelSpec& spec);
  double rope_theta = 10'000;                 // where the file has none
  const char* activation_key = "hidden_act";  // nullptr: fixed by the architecture
};

/// Sorted by name.
std::span<const HfArchitecture> hf_architectures();

}  // namespace prony::catalog
