// The comparison for people.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/compare/compare.hpp"

namespace prony::compare {
namespace {

using record::Change;

// Three significant digits or so, as the table of bench has them.
std::string number(double value) {
  const double size = std::abs(value);
  return size >= 1000  ? fmt::format("{:.0f}", value)
         : size >= 100 ? fmt::format("{:.1f}", value)
         : size >= 1   ? fmt::format("{:.2f}", value)
                       : fmt::format("{:.4g}", value);
}

std::string number(const std::optional<double>& value) {
  return value ? number(*value) : "-";
}

std::string p_text(const std::optional<double>& p) {
  if (!p) return "-";
  return *p < 0.0005 ? "<0.0005" : fmt::format("{:.3f}", *p);
}

std::string interval_text(const Change& change, double scale, int digits) {
  if (!change.interval) return "-";
  return fmt::format("[{:+.{}f}, {:+.{}f}]", change.interval->lower * scale, digits,
                     change.interval->upper * scale, digits);
}

// "+5.5 %" and "[+2.1, +8.8]"; fractions in percentage points.
struct ChangeText {
  std::string value = "-", interval = "-";
};
ChangeText change_text(const record::ComparedMetric& metric) {
  ChangeText out;
  const bool fraction = metric.unit.empty();
  const auto& change = fraction ? metric.difference : metric.relative;
  if (!change.value) return out;
  out.value = fmt::format("{:+.2f} {}", *change.value * 100, fraction ? "pp" : "%");
  out.interval = interval_text(change, 100, 2);
  return out;
}

std::string runs_text(const record::ComparedSide& side) {
  const auto& first = side.runs.front();
  std::string out = first.path;
  if (side.runs.size() > 1) out += fmt::format(" and {} more", side.runs.size() - 1);
  out += first.has_record
             ? fmt::format(" ({}, {}, {})", first.source, first.system_kind, first.started_at)
             : " (rows alone)";
  return out;
}

std::string cut(const std::string& text) {
  constexpr size_t kShown = 60;
  return text.size() <= kShown ? text : text.substr(0, kShown) + "...";
}

void add_head(const record::Comparison& whole, const record::SideComparison& one,
              std::string& out) {
  const auto& candidate = whole.sides[one.candidate];
  out += fmt::format("baseline     {}: {}\n", whole.sides.front().name,
                     runs_text(whole.sides.front()));
  out += fmt::format("candidate    {}: {}\n", candidate.name, runs_text(candidate));
  for (const auto& reason : one.reasons) {
    out +=
        fmt::format("{} {}\n", whole.allow_incomparable ? "caution     " : "INCOMPARABLE", reason);
  }
  for (const auto& difference : one.differences) {
    if (difference.incomparable) continue;
    out += fmt::format("differs      {}.{}: {} | {}\n", difference.section, difference.field,
                       cut(difference.baseline), cut(difference.candidate));
  }
  out += fmt::format("method       {}\n", one.method);
  for (const auto& note : one.notes) out += fmt::format("note         {}\n", note);
}

void add_metrics(const record::Comparison& whole, const record::SideComparison& one,
                 std::string& out) {
  constexpr std::string_view kRow = "{:<31}{:>11}{:>11}{:>12}  {:<20}{:>9}  {}\n";
  const auto name = [](const std::string& text) { return text.substr(0, 10); };
  out += fmt::format(fmt::runtime(kRow), "", name(whole.sides.front().name),
                     name(whole.sides[one.candidate].name), "change",
                     fmt::format("{:g} % interval", whole.confidence * 100), "p (Holm)", "verdict");
  for (const auto& metric : one.metrics) {
    const auto change = change_text(metric);
    const auto unit = metric.unit.empty() ? "" : " [" + metric.unit + "]";
    out += fmt::format(fmt::runtime(kRow), metric.label + unit, number(metric.baseline),
                       number(metric.candidate), change.value, change.interval,
                       p_text(metric.p_holm), record::compare_verdict_name(metric.verdict));
  }
  for (const auto& distribution : one.distributions) {
    out += fmt::format(
        "{:<21}{} of {} and {}: shift {:+.3f} ms {}, Cliff's delta {:+.3f} {}, p {}: {}\n",
        distribution.label + " of all requests", distribution.test, distribution.n_baseline,
        distribution.n_candidate, *distribution.shift_ms.value,
        interval_text(distribution.shift_ms, 1, 3), *distribution.cliffs_delta.value,
        interval_text(distribution.cliffs_delta, 1, 3), p_text(distribution.p_holm),
        record::compare_verdict_name(distribution.verdict));
  }
}

void add_rules(const record::SideComparison& one, std::string& out) {
  for (const auto& rule : one.rules) {
    out += fmt::format("rule         {}: ", rule.text);
    if (rule.change.value) {
      out += fmt::format("{:+.2f} {} {} at {:.4g} %: ", *rule.change.value, rule.unit,
                         interval_text(rule.change, 1, 2), rule.confidence * 100);
    }
    out += record::rule_state_name(rule.state);
    if (rule.state == record::RuleState::kUndecided) {
      out += !rule.change.value    ? ", no figure"
             : rule.estimate_fails ? ", though the estimate fails it"
                                   : "";
    }
    out += '\n';
  }
}

}  // namespace

std::string comparison_table(const record::Comparison& comparison) {
  std::string out;
  for (const auto& one : comparison.comparisons) {
    if (!out.empty()) out += '\n';
    add_head(comparison, one, out);
    out += '\n';
    add_metrics(comparison, one, out);
    add_rules(one, out);
  }
  using enum record::CompareVerdict;
  out += fmt::format(
      "\nverdict      {} improved, {} regressed, {} no difference shown, {} cannot tell\n",
      comparison.count(kImproved), comparison.count(kRegressed), comparison.count(kNoDifference),
      comparison.count(kCannotTell));
  return out;
}

}  // namespace prony::compare
