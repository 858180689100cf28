// Rules of --fail-if: what change fails a comparison.
//   terms:   METRIC_STATISTIC OP SIGN NUMBER UNIT     ttft_p99>+5%, output_throughput<-3%
//   rules are terms joined by commas; each is judged by itself.
// Names are those of --slo. The sign is asked for, so that a change cannot be taken for a bound.
// Units: % of the baseline (latencies, throughputs); us, ms or s (latencies); pp, percentage points
// (goodput_fraction, error_rate). Minimum and maximum have no interval, so no rule.
// Thread safety: pure functions.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/core/slo.hpp"

namespace prony::compare {

enum class RuleUnit { kPercent, kMilliseconds, kPoints };

struct Rule {
  core::SloTerm term;  // metric, statistic, comparison; bound in percent, ms or points
  RuleUnit unit = RuleUnit::kPercent;
  bool operator==(const Rule&) const = default;
};

/// Error: kInvalidArgument, "--fail-if: 'ttft_p99>5%': bound: found '5%', expected a sign ...".
Result<std::vector<Rule>> parse_rules(std::string_view text, std::string_view flag = "--fail-if");
/// Canonical: parse_rules(rule_text(x)) == x.
std::string rule_text(const Rule& rule);
/// "%", "ms", "pp".
const char* rule_unit_name(RuleUnit unit);

}  // namespace prony::compare
