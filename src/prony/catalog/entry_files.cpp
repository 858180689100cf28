#include "prony/catalog/entry_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/nearest_name.hpp"
#include "prony/core/file.hpp"

namespace prony::catalog {

namespace fs = std::filesystem;

Result<std::vector<std::string>> entry_ids(std::string_view kind) {
  const auto data = data_folder();
  if (!data) return data.error();
  const fs::path folder = fs::path(*data) / kind;
  std::vector<std::string> ids;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    if (it->path().extension() == ".yaml") ids.push_back(it->path().stem().string());
  }
  if (code) {
    return environment_error(fmt::format("cannot read {}: {}", folder.string(), code.message()));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

Result<EntryFile> entry_file(std::string_view kind, std::string_view id) {
  const auto ids = entry_ids(kind);
  if (!ids) return ids.error();
  if (!std::binary_search(ids->begin(), ids->end(), id)) {
    const auto nearest = nearest_name(id, *ids);
    return invalid_argument(fmt::format(
        "unknown {} '{}'{}, expected one of: {}", kind == "engines" ? "engine" : kind, id,
        nearest ? fmt::format(", did you mean '{}'", *nearest) : "", fmt::join(*ids, ", ")));
  }
  const auto data = data_folder();
  if (!data) return data.error();
  EntryFile file;
  file.path = (fs::path(*data) / kind / (std::string(id) + ".yaml")).string();
  auto text = core::read_file(file.path);
  if (!text) return text.error();
  file.text = *std::move(text);
  return file;
}

Result<std::string> entry_text(const std::string& path) {
  return core::read_file(path);
}

}  // namespace prony::catalog
