// data/hardware/<id>.yaml to HardwareSpec. docs/catalog.md describes the format; every number has a
// unit that says dense, one-way or both ways, an origin and a reference.
// Thread safety: pure functions; load_* read the files anew. Source: ours.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "prony/catalog/hardware_spec.hpp"
#include "prony/core/result.hpp"

namespace prony::catalog {

/// `name` is the file, for messages. Error: kInvalidArgument, "NAME:LINE: what is wrong".
Result<HardwareSpec> parse_hardware_file(std::string_view text, std::string_view name);

/// Ids of data/hardware, sorted.
Result<std::vector<std::string>> hardware_ids();

/// The machine that `prony probe` measured.
inline constexpr std::string_view kThisHardware = "this";
/// Where its entry is: $XDG_DATA_HOME/prony/hardware-this.yaml, ~/.local/share without it.
std::string this_hardware_path();

/// A catalogue id, "<id>:<slice>" for a partition of it, "this", or a FILE.yaml.
/// Error: kInvalidArgument, with the known ids and the nearest.
Result<HardwareSpec> resolve_hardware(std::string_view name);

}  // namespace prony::catalog
