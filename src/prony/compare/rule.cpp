#include "prony/compare/rule.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "prony/core/slo_name.hpp"
#include "prony/record/json_schema.hpp"

namespace prony::compare {
namespace {

using core::SloComparison;
using core::SloMetric;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool is_fraction(SloMetric metric) {
  return metric == SloMetric::kGoodputFraction || metric == SloMetric::kErrorRate;
}

class RuleParser {
 public:
  RuleParser(std::string_view flag, std::string_view piece) : flag_(flag), piece_(piece) {}

  Result<Rule> parse() const {
    const auto at = piece_.find_first_of("<>");
    if (at == std::string_view::npos) {
      return error("no comparison found, expected <, <=, > or >= as in ttft_p99>+5%");
    }
    Rule rule;
    auto named = core::parse_slo_name(piece_.substr(0, at), flag_, one_line_piece());
    if (!named) return named.error();
    rule.term = *named;
    if (rule.term.statistic == core::SloStatistic::kMin ||
        rule.term.statistic == core::SloStatistic::kMax) {
      return error("a minimum or maximum has no interval, expected a mean or a percentile");
    }
    const bool equal = at + 1 < piece_.size() && piece_[at + 1] == '=';
    const bool less = piece_[at] == '<';
    rule.term.comparison = less ? (equal ? SloComparison::kLessEqual : SloComparison::kLess)
                                : (equal ? SloComparison::kGreaterEqual : SloComparison::kGreater);
    if (auto read = read_bound(trimmed(piece_.substr(at + (equal ? 2 : 1))), rule); !read) {
      return read.error();
    }
    return rule;
  }

 private:
  std::string one_line_piece() const { return record::one_line(piece_, 80); }
  Error error(std::string_view reason) const {
    return invalid_argument(fmt::format("{}: '{}': {}", flag_, one_line_piece(), reason));
  }

  Result<void> read_bound(std::string_view text, Rule& rule) const {
    if (text.empty() || (text[0] != '+' && text[0] != '-')) {
      return error(fmt::format("bound: found '{}', expected a sign, as in +5% or -20ms",
                               record::one_line(text)));
    }
    double number = 0;
    const char* end_of_text = text.data() + text.size();
    const auto [end, code] = std::from_chars(text.data() + 1, end_of_text, number);
    if (code != std::errc() || !std::isfinite(number) || std::signbit(number)) {
      return error(fmt::format("bound: found '{}', expected a number behind the sign",
                               record::one_line(text)));
    }
    rule.term.bound = text[0] == '-' ? -number : number;
    const auto unit = trimmed(text.substr(static_cast<size_t>(end - text.data())));
    if (is_fraction(rule.term.metric)) {
      if (unit != "pp") {
        return error(fmt::format("unit: found '{}', expected pp (percentage points)",
                                 record::one_line(unit)));
      }
      rule.unit = RuleUnit::kPoints;
      return {};
    }
    if (unit == "%") return {};
    const bool latency = core::slo_is_latency(rule.term.metric);
    const double factor = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "us" ? 0.001 : 0;
    if (!latency || factor == 0) {
      return error(fmt::format("unit: found '{}', expected {}", record::one_line(unit),
                               latency ? "%, ms, s or us" : "%"));
    }
    rule.term.bound *= factor;
    rule.unit = RuleUnit::kMilliseconds;
    return {};
  }

  std::string_view flag_, piece_;
};

}  // namespace

Result<std::vector<Rule>> parse_rules(std::string_view text, std::string_view flag) {
  std::vector<Rule> rules;
  for (size_t begin = 0; begin <= text.size();) {
    const auto comma = std::min(text.find(',', begin), text.size());
    const auto piece = trimmed(text.substr(begin, comma - begin));
    if (piece.empty()) {
      return invalid_argument(fmt::format("{}: '{}': empty term, expected one like ttft_p99>+5%",
                                          flag, record::one_line(text, 80)));
    }
    auto rule = RuleParser(flag, piece).parse();
    if (!rule) return rule.error();
    rules.push_back(*rule);
    begin = comma + 1;
  }
  return rules;
}

const char* rule_unit_name(RuleUnit unit) {
  return unit == RuleUnit::kPercent ? "%" : unit == RuleUnit::kMilliseconds ? "ms" : "pp";
}

std::string rule_text(const Rule& rule) {
  const bool latency = core::slo_is_latency(rule.term.metric);
  return fmt::format("{}{}{}{}{:+}{}", core::slo_metric_name(rule.term.metric), latency ? "_" : "",
                     core::slo_statistic_name(rule.term.statistic),
                     core::slo_comparison_text(rule.term.comparison), rule.term.bound,
                     rule_unit_name(rule.unit));
}

}  // namespace prony::compare
