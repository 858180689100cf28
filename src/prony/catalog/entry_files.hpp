// Files of one kind of catalogue entry (data/hardware, data/engines), by id. Internal to catalog.
// Thread safety: pure functions; every call reads anew.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::catalog {

/// Ids of data/<kind>/*.yaml, sorted.
Result<std::vector<std::string>> entry_ids(std::string_view kind);

struct EntryFile {
  std::string path, text;
};
/// Error: kInvalidArgument for an unknown id, with the known ones and the nearest.
Result<EntryFile> entry_file(std::string_view kind, std::string_view id);

/// The text of a file anywhere.
Result<std::string> entry_text(const std::string& path);

}  // namespace prony::catalog
