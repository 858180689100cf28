// Comparison: the document of `prony compare`, prony.compare/1 (docs/schema/prony.compare.1.json):
// two or more sides, what differs between them, and for every metric the change with its interval
// and a verdict. Definitions: docs/compare.md. The first side is the baseline of all others.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/record/record.hpp"

namespace prony::record {

inline constexpr const char* kCompareSchema = "prony.compare/1";

struct ComparedRun {
  std::string path, label, started_at;
  bool has_record = false;
  std::string source, system_kind;  // empty without a record
  std::optional<int64_t> rows;      // nullopt: no requests.jsonl, or not of this record
  bool valid = true, interrupted = false;
  std::vector<std::string> reasons;  // why not valid
};
struct ComparedSide {
  std::string name;
  std::vector<ComparedRun> runs;
};

/// A field of system, workload or environment in which the sides differ.
struct CompareDifference {
  std::string section, field, baseline, candidate;
  bool incomparable = false;  // what follows is not about the same thing
};

enum class CompareVerdict { kImproved, kRegressed, kNoDifference, kCannotTell };
/// "improved", "regressed", "no difference shown", "cannot tell".
const char* compare_verdict_name(CompareVerdict verdict);

struct Change {
  std::optional<double> value;
  std::optional<stats::Interval> interval;  // at Comparison::confidence
};

struct ComparedMetric {
  std::string key, label, unit;  // "ttft_p99", "TTFT p99", "ms"
  bool higher_is_better = false;
  std::optional<double> baseline, candidate;  // several runs: the mean of theirs
  Change difference;                          // candidate - baseline, in `unit`
  Change relative;  // candidate / baseline - 1 (runs: of geometric means); none for fractions
  std::optional<double> p, p_holm;
  std::string method;   // how, or why there is no interval
  int64_t samples = 0;  // blocks, or runs, of both sides together
  CompareVerdict verdict = CompareVerdict::kCannotTell;
};

/// A rank test of all requests.
struct ComparedDistribution {
  std::string key, label, test;  // "ttft", "TTFT", "wilcoxon" or "mann-whitney"
  int64_t n_baseline = 0, n_candidate = 0;
  Change shift_ms, cliffs_delta;
  std::optional<double> p, p_holm;
  CompareVerdict verdict = CompareVerdict::kCannotTell;
};

enum class RuleState { kKept, kBroken, kUndecided };
const char* rule_state_name(RuleState state);

/// A term of --fail-if.
struct ComparedRule {
  std::string text;             // "ttft_p99>+5%"
  Change change;                // in the rule's own unit, at `confidence`
  std::string unit;             // "%", "ms", "pp"
  double confidence = 0;        // of each of all rules, so that all hold together
  bool estimate_fails = false;  // the estimate itself is past the bound
  RuleState state = RuleState::kUndecided;
};

/// The empirical distribution of one latency of one side, thinned; for the page, not in the JSON.
struct CompareCurve {
  std::string key, label;
  size_t side = 0;
  int64_t n = 0;
  std::vector<double> x_ms, p;
};

struct SideComparison {
  size_t candidate = 1;              // index into sides; the baseline is side 0
  std::string method;                // "paired", "unpaired", "runs", "paired runs", "figures"
  bool comparable = true;            // false: the verdicts are "cannot tell"
  std::vector<std::string> reasons;  // why not
  std::vector<std::string> notes;
  std::vector<CompareDifference> differences;
  std::vector<ComparedMetric> metrics;
  std::vector<ComparedDistribution> distributions;
  std::vector<ComparedRule> rules;
};

struct Comparison {
  double confidence = 0.95;
  uint64_t seed = 1;
  int64_t replicates = 0;
  bool allow_incomparable = false;
  std::vector<ComparedSide> sides;
  std::vector<SideComparison> comparisons;
  std::vector<CompareCurve> curves;
  std::string version;  // of this program, for the page

  /// Any rule broken.
  bool broken() const;
  /// Sides that may not be compared, without leave to do so all the same.
  bool refused() const;
  int64_t count(CompareVerdict verdict) const;
};

core::Json comparison_to_json(const Comparison& comparison);
/// Draft 2020-12, docs/schema/prony.compare.1.json.
core::Json comparison_json_schema();
/// Valid pretty JSON with a final newline. Error: a document that does not keep the schema, then a
/// bug of ours.
Result<std::string> comparison_text(const Comparison& comparison);

}  // namespace prony::record
