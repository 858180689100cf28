#include "prony/catalog/catalog.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "prony/catalog/presets.hpp"
#include "prony/core/system.hpp"

namespace prony::catalog {
namespace {

namespace fs = std::filesystem;

bool has_models(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "models", ignored);
}

}  // namespace

bool is_dummy(std::string_view name) {
  return name.starts_with(kDummyPrefix);
}

Result<std::string> data_folder() {
  if (const auto named = core::environment_variable("PRONY_DATA")) {
    if (has_models(*named)) return *named;
    return environment_error(
        fmt::format("PRONY_DATA is '{}', expected a folder with models/ in it", *named));
  }
  const fs::path program = core::program_folder();
  for (fs::path above = program;; above = above.parent_path()) {
    if (has_models(above / "data")) return (above / "data").string();
    if (above == above.parent_path()) break;
  }
  return environment_error(fmt::format(
      "no data folder beside {} or in a folder above it; set PRONY_DATA to the folder with models/",
      program.string()));
}

Result<ModelSpec> resolve_model(std::string_view name) {
  if (is_dummy(name)) {
    if (auto preset = find_preset(name.substr(kDummyPrefix.size()))) return *std::move(preset);
  }
  return invalid_argument(fmt::format("unknown model '{}'", name));
}

}  // namespace prony::catalog
