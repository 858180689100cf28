#include "prony/catalog/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "prony/catalog/hf_config.hpp"
#include "prony/catalog/model_file.hpp"
#include "prony/catalog/nearest_name.hpp"
#include "prony/catalog/presets.hpp"
#include "prony/core/file.hpp"
#include "prony/core/system.hpp"

namespace prony::catalog {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kYaml = ".yaml";

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// An id becomes part of a file name, so it must not lead out of the folder.
bool is_plain_id(std::string_view id) {
  return !id.empty() && id.find('/') == std::string_view::npos && id.front() != '.';
}

Result<ModelSpec> load_file(const std::string& path) {
  auto text = core::read_file(path);
  if (!text) return text.error();
  return path.ends_with(kYaml) ? parse_model_file(*text, path) : parse_hf_config(*text, path);
}

Error unknown_model(std::string_view name, const std::vector<std::string>& ids) {
  std::vector<std::string> known = ids;
  for (const std::string& preset : preset_names()) {
    known.push_back(std::string(kDummyPrefix) + preset);
  }
  // "dummy:lama-3.1-8b" is near "llama-3.1-8b", and the answer keeps the prefix.
  if (is_dummy(name)) {
    for (const std::string& id : ids) known.push_back(std::string(kDummyPrefix) + id);
  }
  const auto nearest = nearest_name(name, known);
  return invalid_argument(fmt::format(
      "unknown model '{}'{}, expected a catalogue id ({}), dummy:<id or {}>, or a folder with "
      "config.json",
      name, nearest ? fmt::format(", did you mean '{}'", *nearest) : "", fmt::join(ids, ", "),
      fmt::join(preset_names(), ", ")));
}

// nullopt if no entry has that Hugging Face id.
Result<std::optional<ModelSpec>> find_huggingface(std::string_view name,
                                                  const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    auto spec = load_model(id);
    if (!spec) return spec.error();
    if (!spec->huggingface_id.empty() && edit_distance(spec->huggingface_id, name) == 0) {
      return std::optional(*std::move(spec));
    }
  }
  return std::optional<ModelSpec>();
}

}  // namespace

bool is_dummy(std::string_view name) {
  return name.starts_with(kDummyPrefix);
}

Result<std::string> data_folder() {
  if (const auto named = core::environment_variable("PRONY_DATA")) {
    if (is_folder(fs::path(*named) / "models")) return *named;
    return environment_error(
        fmt::format("PRONY_DATA is '{}', expected a folder with models/ in it", *named));
  }
  return find_data_folder(core::program_folder());
}

Result<std::string> find_data_folder(const std::string& program_folder) {
  for (fs::path above = program_folder;; above = above.parent_path()) {
    if (is_folder(above / "data" / "models")) return (above / "data").string();
    if (above == above.parent_path()) break;
  }
  return environment_error(fmt::format(
      "no data folder beside {} or in a folder above it; set PRONY_DATA to the folder with models/",
      program_folder));
}

Result<std::vector<std::string>> model_ids() {
  const auto folder = data_folder();
  if (!folder) return folder.error();
  const fs::path models = fs::path(*folder) / "models";
  std::vector<std::string> ids;
  std::error_code code;
  for (fs::directory_iterator it(models, code), end; !code && it != end; it.increment(code)) {
    const fs::path& path = it->path();
    if (path.extension() == kYaml && is_plain_id(path.filename().string())) {
      ids.push_back(path.stem().string());
    }
  }
  if (code) {
    return environment_error(fmt::format("cannot read {}: {}", models.string(), code.message()));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

Result<ModelSpec> load_model(std::string_view id) {
  const auto folder = data_folder();
  if (!folder) return folder.error();
  const fs::path path = fs::path(*folder) / "models" / (std::string(id) + std::string(kYaml));
  if (!is_plain_id(id) || !is_file(path)) {
    const auto ids = model_ids();
    if (!ids) return ids.error();
    return unknown_model(id, *ids);
  }
  auto spec = load_file(path.string());
  if (spec && spec->id != id) {
    return invalid_argument(
        fmt::format("{}: id is '{}', expected the file's name", path.string(), spec->id));
  }
  return spec;
}

Result<ModelSpec> load_model_folder(const std::string& folder) {
  const fs::path root(folder);
  const std::string config = (root / "config.json").string();
  if (!is_file(config)) {
    return invalid_argument(
        fmt::format("{}: no config.json, expected a Hugging Face model folder", folder));
  }
  auto spec = load_file(config);
  if (!spec) return spec;
  const std::string generation = (root / "generation_config.json").string();
  if (is_file(generation)) {
    const auto text = core::read_file(generation);
    if (!text) return text.error();
    if (auto added = add_generation_config(*text, generation, *spec); !added) return added.error();
  }
  // "models/llama/" and "." have an empty or meaningless last part.
  std::error_code ignored;
  fs::path named = fs::weakly_canonical(root, ignored);
  if (ignored) named = root;
  spec->id = (named.has_filename() ? named : named.parent_path()).filename().string();
  return spec;
}

Result<ModelSpec> resolve_model(std::string_view name) {
  const bool dummy = is_dummy(name);
  if (dummy) {
    const std::string_view base = name.substr(kDummyPrefix.size());
    if (auto preset = find_preset(base)) return *std::move(preset);
    if (is_dummy(base)) {
      return invalid_argument(fmt::format("model is '{}', expected one 'dummy:' only", name));
    }
    auto ids = model_ids();
    if (!ids) return ids.error();
    if (base.find('/') == std::string_view::npos &&
        !std::binary_search(ids->begin(), ids->end(), base)) {
      return unknown_model(name, *ids);
    }
    auto spec = resolve_model(base);
    if (spec) spec->id = name;
    return spec;
  }

  const std::string path(name);
  const bool looks_like_path = path.find('/') != std::string::npos || path.starts_with(".");
  std::vector<std::string> ids;
  if (!looks_like_path) {
    // A folder of weights is usable without any catalogue, so a missing one is no error yet.
    auto found = model_ids();
    if (found) ids = *std::move(found);
    if (std::binary_search(ids.begin(), ids.end(), path)) return load_model(name);
    if (!found && !is_folder(path) && !is_file(path)) return found.error();
  }
  if (is_folder(path)) return load_model_folder(path);
  if (is_file(path)) {
    if (!path.ends_with(kYaml) && !path.ends_with(".json")) {
      return invalid_argument(
          fmt::format("model is the file '{}', expected a folder, .yaml or .json", name));
    }
    auto spec = load_file(path);
    if (spec && spec->id.empty()) spec->id = fs::path(path).stem().string();
    return spec;
  }
  if (looks_like_path) {
    auto found = model_ids();
    if (!found) return found.error();
    ids = *std::move(found);
    auto by_hub_id = find_huggingface(name, ids);
    if (!by_hub_id) return by_hub_id.error();
    if (*by_hub_id) return **std::move(by_hub_id);
  }
  return unknown_model(name, ids);
}

}  // namespace prony::catalog
