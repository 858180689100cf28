#include "prony/workload/json_lines.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "prony/token/quote.hpp"
#include "prony/workload/lengths.hpp"

namespace prony::workload {

JsonLines::JsonLines(std::string_view content, std::string path)
    : rest_(content), path_(std::move(path)) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
}

Result<bool> JsonLines::next() {
  while (!rest_.empty()) {
    const size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++line_;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto json = core::parse_json(line, fmt::format("{}:{}", path_, line_));
    if (!json) return json.error();
    if (!json->is_object()) {
      return invalid_argument(
          fmt::format("{}:{}: found {}, expected an object", path_, line_, token::quote(line)));
    }
    object_ = std::move(json).value();
    return true;
  }
  return false;
}

const core::Json* JsonLines::find(std::string_view name) const {
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

Result<double> JsonLines::number(std::string_view name) const {
  const auto* value = find(name);
  if (value == nullptr || !value->is_number() || !(value->get<double>() >= 0) ||
      !(value->get<double>() <= 1e18)) {
    return unexpected(name, "a number >= 0");
  }
  return value->get<double>();
}

Result<int32_t> JsonLines::tokens(std::string_view name) const {
  const auto* value = find(name);
  if (value == nullptr || !value->is_number()) return unexpected(name, "a number of tokens");
  const auto number = value->get<double>();
  if (!(number >= 0 && number <= kTokensMax) || number != std::floor(number)) {
    return unexpected(name, fmt::format("a whole number, 0 to {}", kTokensMax));
  }
  return static_cast<int32_t>(number);
}

Error JsonLines::unexpected(std::string_view name, std::string_view what) const {
  const auto* value = find(name);
  const std::string found =
      value == nullptr
          ? "none"
          : token::quote(value->dump(-1, ' ', false, core::Json::error_handler_t::replace));
  return invalid_argument(
      fmt::format("{}:{}: {}: found {}, expected {}", path_, line_, name, found, what));
}

}  // namespace prony::workload
