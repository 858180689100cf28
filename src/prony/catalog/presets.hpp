// Presets: shapes of invented models for `dummy:<preset>`. They are no model anybody trained; they
// exist so that tests, the demo and a first benchmark need no download.
// Thread safety: pure functions. Source: ours.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/catalog/model_spec.hpp"

namespace prony::catalog {

/// nullopt for an unknown name. The id of the result is "dummy:" + name.
std::optional<ModelSpec> find_preset(std::string_view name);

/// Sorted.
std::vector<std::string> preset_names();

}  // namespace prony::catalog
