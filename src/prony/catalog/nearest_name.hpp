// The known name nearest to an unknown one, for "did you mean".
// Thread safety: pure functions. Source: optimal string alignment distance (Damerau-Levenshtein
// without repeated edits of a part).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace prony::catalog {

/// Insertions, deletions, replacements and swaps of neighbours, ignoring ASCII case.
size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of `known` if it is near enough to be a slip (a third of the letters), or if one is
/// the other with something before or behind ("meta-llama/Llama-3.1-8B-Instruct"); else nullopt.
/// The first of equals wins.
std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> known);

}  // namespace prony::catalog
