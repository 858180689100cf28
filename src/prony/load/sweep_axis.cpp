#include "prony/load/sweep_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace prony::load {
namespace {

constexpr size_t kNameBytesMax = 40;

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// 12 digits: what is left of 0.1 + 0.1 + 0.1 is not seen.
std::string number_text(double value) {
  return fmt::format("{:.12g}", value == 0 ? 0.0 : value);
}

bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '+';
  };
  return !text.empty() && text.size() <= kNameBytesMax && text.front() != '.' &&
         text.front() != '-' && std::all_of(text.begin(), text.end(), allowed);
}

struct Range {
  double from = 0, to = 0, step = 0;
  bool multiply = false;
};

// "a:b:s", "a:b:xK" or "a-b*K"; nullopt: no such form.
std::optional<Range> parse_range(std::string_view text) {
  Range range;
  std::string_view from, to, step;
  if (const auto first = text.find(':'); first != std::string_view::npos) {
    const auto second = text.find(':', first + 1);
    if (second == std::string_view::npos) return std::nullopt;
    from = text.substr(0, first);
    to = text.substr(first + 1, second - first - 1);
    step = text.substr(second + 1);
    range.multiply = step.starts_with('x');
    if (range.multiply) step.remove_prefix(1);
  } else {
    const auto star = text.find('*'), dash = text.find('-', 1);
    if (star == std::string_view::npos || dash >= star) return std::nullopt;
    from = text.substr(0, dash);
    to = text.substr(dash + 1, star - dash - 1);
    step = text.substr(star + 1);
    range.multiply = true;
  }
  const auto a = parse_double(from), b = parse_double(to), s = parse_double(step);
  if (!a || !b || !s) return std::nullopt;
  range.from = *a;
  range.to = *b;
  range.step = *s;
  return range;
}

class AxisParser {
 public:
  explicit AxisParser(std::string_view text) : text_(text) {}

  Result<SweepAxis> parse() {
    const auto at = text_.find('=');
    if (at == std::string_view::npos || at + 1 == text_.size() || !is_name(text_.substr(0, at))) {
      return error("expected AXIS=VALUES, as in concurrency=1,2,4");
    }
    axis_.name = text_.substr(0, at);
    const auto values = text_.substr(at + 1);
    auto done = axis_.name == kTargetAxis ? parse_targets(values) : parse_numbers(values);
    if (!done) return done.error();
    return axis_;
  }

 private:
  Error error(std::string_view reason) const {
    return invalid_argument(fmt::format("--sweep {}: {}", text_, reason));
  }

  Result<void> add(std::string value) {
    if (!seen_.insert(value).second) return error(fmt::format("found '{}' twice", value));
    if (axis_.values.size() >= kAxisValuesMax) {
      return error(fmt::format("found more than {} values", kAxisValuesMax));
    }
    axis_.values.push_back(std::move(value));
    return {};
  }

  Result<void> add_range(const Range& range) {
    const bool rises = range.from <= range.to;
    if (!rises || (range.multiply ? !(range.step > 1 && range.from > 0) : !(range.step > 0))) {
      return error("expected a range that rises, a:b:step or a:b:xfactor");
    }
    // The end belongs to the range although the steps to it were rounded.
    const double end = range.to * (1 + 1e-12);
    double value = range.from;
    for (int64_t i = 1; value <= end; ++i) {
      if (auto added = add(number_text(value)); !added) return added;
      const double next =
          range.multiply ? value * range.step : range.from + static_cast<double>(i) * range.step;
      if (!(next > value)) break;
      value = next;
    }
    return {};
  }

  Result<void> parse_numbers(std::string_view values) {
    while (true) {
      const auto piece = values.substr(0, values.find(','));
      Result<void> added;
      if (piece == "inf") {
        added = add("inf");
      } else if (const auto number = parse_double(piece)) {
        added = add(number_text(*number));
      } else if (const auto range = parse_range(piece)) {
        added = add_range(*range);
      } else {
        return error(
            fmt::format("found '{}', expected a number, a:b:step, a:b:xfactor or inf", piece));
      }
      if (!added || piece.size() == values.size()) return added;
      values.remove_prefix(piece.size() + 1);
    }
  }

  // Does NAME=http://, NAME=https:// or NAME=cmd: begin here?
  static bool begins_target(std::string_view text) {
    const auto at = text.find('=');
    if (at == std::string_view::npos || !is_name(text.substr(0, at))) return false;
    const auto rest = text.substr(at + 1);
    return rest.starts_with("http://") || rest.starts_with("https://") || rest.starts_with("cmd:");
  }

  Result<void> parse_targets(std::string_view text) {
    while (true) {
      if (!begins_target(text)) {
        return error(fmt::format(
            "found '{}', expected NAME=http://..., NAME=https://... or NAME=cmd:COMMAND",
            text.substr(0, text.find(','))));
      }
      size_t end = text.find(',');
      while (end != std::string_view::npos && !begins_target(text.substr(end + 1))) {
        end = text.find(',', end + 1);
      }
      const auto piece = text.substr(0, end);
      const auto at = piece.find('=');
      SweepTarget target;
      target.name = piece.substr(0, at);
      const auto where = piece.substr(at + 1);
      if (where.starts_with("cmd:")) {
        target.command = where.substr(4);
        if (target.command.find_first_not_of(' ') == std::string::npos) {
          return error(fmt::format("found no command of '{}'", target.name));
        }
      } else {
        target.url = where;
      }
      if (auto added = add(target.name); !added) return added;
      axis_.targets.push_back(std::move(target));
      if (end == std::string_view::npos) return {};
      text.remove_prefix(end + 1);
    }
  }

  std::string_view text_;
  SweepAxis axis_;
  std::set<std::string> seen_;
};

}  // namespace

Result<SweepAxis> parse_sweep_axis(std::string_view text) {
  return AxisParser(text).parse();
}

std::optional<double> axis_number(std::string_view value) {
  return parse_double(value);
}

}  // namespace prony::load
