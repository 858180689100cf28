#include "prony/catalog/nearest_name.hpp"

#include <algorithm>
#include <vector>

namespace prony::catalog {
namespace {

// Longer names cannot be slips of ours; the bound keeps a hostile argument from costing time.
constexpr size_t kNameMax = 128;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return result;
}

}  // namespace

size_t edit_distance(std::string_view first, std::string_view second) {
  const std::string a = lower(first), b = lower(second);
  // Three rows of the usual table: a swap looks two rows back.
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> known) {
  if (name.empty() || name.size() > kNameMax) return std::nullopt;
  const std::string wanted = lower(name);
  std::optional<std::string> best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (best) return best;
  size_t longest = 0;  // of several parts the longest says most
  for (const std::string& candidate : known) {
    const bool part = wanted.find(lower(candidate)) != std::string::npos ||
                      (wanted.size() >= 3 && lower(candidate).find(wanted) != std::string::npos);
    if (part && candidate.size() > longest) {
      longest = candidate.size();
      best = candidate;
    }
  }
  return best;
}

}  // namespace prony::catalog
