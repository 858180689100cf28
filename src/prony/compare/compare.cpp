#include "prony/compare/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "prony/compare/differences.hpp"
#include "prony/compare/run_data.hpp"
#include "prony/compare/run_pair.hpp"
#include "prony/compare/side_runs.hpp"
#include "prony/core/check.hpp"
#include "prony/record/slo_verdict.hpp"
#include "prony/stats/holm.hpp"

namespace prony::compare {
namespace {

using core::SloMetric;
using core::SloStatistic;
using core::SloTerm;
using record::Change;
using record::ComparedMetric;
using record::CompareVerdict;

constexpr std::array kLatencies = {SloMetric::kTtft, SloMetric::kTpot, SloMetric::kItl,
                                   SloMetric::kE2e};
constexpr std::array kStatistics = {SloStatistic::kMean, SloStatistic::kP50, SloStatistic::kP90,
                                    SloStatistic::kP95, SloStatistic::kP99};
constexpr std::array kWhole = {SloMetric::kRequestThroughput, SloMetric::kOutputThroughput,
                               SloMetric::kGoodputFraction, SloMetric::kErrorRate};
constexpr std::array kRanked = {SloMetric::kTtft, SloMetric::kTpot, SloMetric::kE2e};

const char* metric_label(SloMetric metric) {
  switch (metric) {
    case SloMetric::kTtft:
      return "TTFT";
    case SloMetric::kTpot:
      return "TPOT";
    case SloMetric::kItl:
      return "ITL";
    case SloMetric::kIcl:
      return "ICL";
    case SloMetric::kE2e:
      return "E2E";
    case SloMetric::kTtftIntended:
      return "TTFT intended";
    case SloMetric::kE2eIntended:
      return "E2E intended";
    case SloMetric::kGoodputFraction:
      return "goodput fraction";
    case SloMetric::kErrorRate:
      return "error rate";
    case SloMetric::kRequestThroughput:
      return "request throughput";
    case SloMetric::kOutputThroughput:
      return "output throughput";
  }
  return "";
}

const char* metric_unit(SloMetric metric) {
  if (core::slo_is_latency(metric)) return "ms";
  if (metric == SloMetric::kRequestThroughput) return "requests/s";
  return metric == SloMetric::kOutputThroughput ? "tokens/s" : "";
}

bool higher_is_better(SloMetric metric) {
  return metric == SloMetric::kGoodputFraction || metric == SloMetric::kRequestThroughput ||
         metric == SloMetric::kOutputThroughput;
}

std::string with_statistic(const char* name, SloTerm term, const char* between) {
  if (!core::slo_is_latency(term.metric)) return name;
  return fmt::format("{}{}{}", name, between, core::slo_statistic_name(term.statistic));
}

// What is compared by default, and what rules ask for beyond.
std::vector<SloTerm> wanted_terms(const std::vector<Rule>& rules) {
  std::vector<SloTerm> out;
  for (const auto metric : kLatencies) {
    for (const auto statistic : kStatistics) out.push_back({metric, statistic, {}, 0});
  }
  for (const auto metric : kWhole) out.push_back({metric, SloStatistic::kNone, {}, 0});
  for (const auto& rule : rules) {
    const SloTerm term{rule.term.metric, rule.term.statistic, {}, 0};
    if (std::ranges::find(out, term) == out.end()) out.push_back(term);
  }
  return out;
}

Change change_of(const std::optional<ChangeLaw>& law, double confidence) {
  if (!law) return {};
  return {law->value, law->interval(confidence)};
}

ComparedMetric compared(const SloTerm& term, const MetricChange& found, double confidence) {
  ComparedMetric out;
  out.key = with_statistic(core::slo_metric_name(term.metric), term, "_");
  out.label = with_statistic(metric_label(term.metric), term, " ");
  out.unit = metric_unit(term.metric);
  out.higher_is_better = higher_is_better(term.metric);
  out.baseline = found.baseline;
  out.candidate = found.candidate;
  out.method = found.method;
  out.samples = found.samples;
  out.relative = change_of(found.relative, confidence);
  out.difference = change_of(found.difference, confidence);
  const auto& law = found.relative ? found.relative : found.difference;
  if (law) out.p = law->p;
  if (!found.baseline || !found.candidate) return out;
  // Without a law: what the two figures say by themselves.
  if (!out.difference.value) out.difference.value = *found.candidate - *found.baseline;
  const bool fraction = out.unit.empty();
  if (!out.relative.value && !fraction && *found.baseline > 0) {
    out.relative.value = *found.candidate / *found.baseline - 1;
  }
  return out;
}

// At a confidence that holds for all rules together (Bonferroni).
record::ComparedRule judged(const Rule& rule, const MetricChange& found,
                            const ComparedMetric& metric, double confidence, bool may_judge) {
  record::ComparedRule out;
  out.text = rule_text(rule);
  out.unit = rule_unit_name(rule.unit);
  out.confidence = confidence;
  const bool percent = rule.unit == RuleUnit::kPercent;
  const double scale = rule.unit == RuleUnit::kMilliseconds ? 1 : 100;
  const auto& law = percent ? found.relative : found.difference;
  const auto value = percent ? metric.relative.value : metric.difference.value;
  if (!value) return out;
  out.change.value = *value * scale;
  out.estimate_fails = rule.term.holds(*out.change.value);
  if (!law) return out;
  const auto interval = law->interval(confidence);
  out.change.interval = stats::Interval{interval.lower * scale, interval.upper * scale};
  if (!may_judge) return out;
  const bool low = rule.term.holds(out.change.interval->lower);
  const bool high = rule.term.holds(out.change.interval->upper);
  if (low == high) out.state = low ? record::RuleState::kBroken : record::RuleState::kKept;
  return out;
}

class PairOfSides {
 public:
  PairOfSides(const std::vector<SideInput>& sides, size_t candidate, const Options& options)
      : baseline_(sides.front()), candidate_(sides[candidate]), options_(options) {
    out_.candidate = candidate;
    out_.differences = find_differences(baseline_, candidate_);
    out_.reasons = obstacles(baseline_, candidate_, out_.differences);
    out_.comparable = out_.reasons.empty();
  }

  record::SideComparison run(double rule_confidence) && {
    add_notes();
    const auto terms = wanted_terms(options_.rules);
    if (baseline_.runs.size() + candidate_.runs.size() > 2) {
      const SideRuns runs(baseline_, candidate_);
      out_.method = runs.paired() ? "paired runs" : "runs";
      take(
          terms, [&](const SloTerm& term) { return runs.change(term); }, rule_confidence);
    } else if (baseline_.runs.front().window && candidate_.runs.front().window) {
      compare_rows(terms, rule_confidence);
    } else {
      out_.method = "figures";
      take(
          terms, [&](const SloTerm& term) { return figures(term); }, rule_confidence);
    }
    return std::move(out_);
  }

 private:
  bool may_judge() const { return out_.comparable || options_.allow_incomparable; }

  template <class Find>
  void take(const std::vector<SloTerm>& terms, const Find& find, double rule_confidence) {
    out_.rules.resize(options_.rules.size());
    for (const auto& term : terms) {
      const MetricChange found = find(term);
      auto metric = compared(term, found, options_.confidence);
      for (size_t i = 0; i < options_.rules.size(); ++i) {
        const auto& rule = options_.rules[i];
        if (rule.term.metric != term.metric || rule.term.statistic != term.statistic) continue;
        out_.rules[i] = judged(rule, found, metric, rule_confidence, may_judge());
      }
      if (found.baseline || found.candidate) out_.metrics.push_back(std::move(metric));
    }
  }

  MetricChange figures(const SloTerm& term) const {
    MetricChange out;
    out.baseline = record::slo_value(term, baseline_.runs.front().metrics);
    out.candidate = record::slo_value(term, candidate_.runs.front().metrics);
    out.method =
        "figures alone: rows (requests.jsonl) of both sides, or several runs, give intervals";
    return out;
  }

  void compare_rows(const std::vector<SloTerm>& terms, double rule_confidence) {
    std::set<SloMetric> latencies;
    for (const auto& term : terms) {
      if (core::slo_is_latency(term.metric)) latencies.insert(term.metric);
    }
    const auto &a = baseline_.runs.front(), &b = candidate_.runs.front();
    const auto data_a = make_run_data(a, latencies), data_b = make_run_data(b, latencies);
    const auto digest = schedule_digest(a);
    const bool vouched = !digest.empty() && digest == schedule_digest(b);
    const bool paired = same_requests(data_a, data_b, !vouched);
    out_.method = paired ? "paired" : "unpaired";
    if (vouched && !paired) {
      out_.notes.push_back(
          "one schedule, but not the same requests in both windows: compared unpaired");
    }
    RunPair pair(a, data_a, b, data_b, paired, {options_.replicates, options_.seed});
    take(
        terms, [&](const SloTerm& term) { return pair.change(term); }, rule_confidence);
    for (const auto metric : kRanked) {
      const auto found = pair.rank_test(metric, options_.confidence);
      if (!found) continue;
      record::ComparedDistribution out;
      out.key = core::slo_metric_name(metric);
      out.label = metric_label(metric);
      out.test = paired ? "wilcoxon" : "mann-whitney";
      out.n_baseline = std::ssize(data_a.latencies.at(metric).values);
      out.n_candidate = std::ssize(data_b.latencies.at(metric).values);
      out.shift_ms = {found->shift, found->shift_interval};
      out.cliffs_delta = {found->delta, found->delta_interval};
      out.p = found->p_value;
      out_.distributions.push_back(std::move(out));
    }
  }

  void add_notes() {
    if (baseline_.runs.size() == 1 && candidate_.runs.size() == 1) {
      out_.notes.push_back(
          "one run a side: how much two runs of one system differ is not in these intervals and "
          "cannot be known from them");
    } else if (baseline_.runs.size() == 1 || candidate_.runs.size() == 1) {
      out_.notes.push_back("a single run on one side: it is taken to vary as the other side's do");
    }
    for (const auto* side : {&baseline_, &candidate_}) {
      for (const auto& run : side->runs) {
        if (!run.record) {
          out_.notes.push_back(run.path +
                               ": no record.json, so what was tested and how is not known");
        }
        if (!run.rows_note.empty()) out_.notes.push_back(run.path + ": " + run.rows_note);
        if (run.metrics.overloaded == true) {
          out_.notes.push_back(run.path + " was overloaded: its figures depend on how long it ran");
        }
        if (run.metrics.steady == false) out_.notes.push_back(run.path + " was not steady");
      }
    }
  }

  const SideInput &baseline_, &candidate_;
  const Options& options_;
  record::SideComparison out_;
};

record::ComparedSide described(const SideInput& side) {
  record::ComparedSide out{side.name, {}};
  for (const auto& run : side.runs) {
    record::ComparedRun one;
    one.path = run.path;
    if (run.window) one.rows = std::ssize(run.rows);
    if (run.record) {
      one.has_record = true;
      one.label = run.record->run.label;
      one.started_at = run.record->run.started_at;
      one.source = record::source_name(run.record->source);
      one.system_kind = record::system_kind_name(run.record->system.kind);
      one.valid = run.record->validity.valid;
      one.reasons = run.record->validity.reasons;
      one.interrupted = run.record->run.interrupted;
    }
    out.runs.push_back(std::move(one));
  }
  return out;
}

CompareVerdict verdict_of(std::optional<double> p_holm, double change, bool higher_is_better,
                          double level, bool may_judge) {
  if (!p_holm || !may_judge) return CompareVerdict::kCannotTell;
  if (*p_holm > level || change == 0) return CompareVerdict::kNoDifference;
  return (change > 0) == higher_is_better ? CompareVerdict::kImproved : CompareVerdict::kRegressed;
}

// Every test of every comparison is one family.
void judge(record::Comparison& comparison) {
  std::vector<double> p_values;
  const auto each = [&](const auto& visit) {
    for (auto& one : comparison.comparisons) {
      for (auto& metric : one.metrics) visit(metric);
      for (auto& distribution : one.distributions) visit(distribution);
    }
  };
  each([&](const auto& tested) {
    if (tested.p) p_values.push_back(*tested.p);
  });
  const auto adjusted = stats::holm_adjusted(p_values);
  size_t next = 0;
  each([&](auto& tested) {
    if (tested.p) tested.p_holm = adjusted[next++];
  });
  const double level = 1 - comparison.confidence;
  for (auto& one : comparison.comparisons) {
    const bool may_judge = one.comparable || comparison.allow_incomparable;
    for (auto& metric : one.metrics) {
      const auto& change = metric.relative.value ? metric.relative : metric.difference;
      metric.verdict = verdict_of(metric.p_holm, change.value.value_or(0), metric.higher_is_better,
                                  level, may_judge);
    }
    for (auto& distribution : one.distributions) {
      // Ranks, not the shift: that may be 0 where the sides differ.
      distribution.verdict = verdict_of(distribution.p_holm, *distribution.cliffs_delta.value,
                                        false, level, may_judge);
    }
  }
}

}  // namespace

record::Comparison compare(const std::vector<SideInput>& sides, const Options& options) {
  PRONY_CHECK(sides.size() >= 2, "one side alone");
  record::Comparison out;
  out.confidence = options.confidence;
  out.seed = options.seed;
  out.replicates = options.replicates;
  out.allow_incomparable = options.allow_incomparable;
  for (const auto& side : sides) {
    PRONY_CHECK(!side.runs.empty(), "a side without a run");
    out.sides.push_back(described(side));
  }
  const double rules = static_cast<double>(options.rules.size() * (sides.size() - 1));
  const double rule_confidence = 1 - (1 - options.confidence) / std::max(1.0, rules);
  for (size_t i = 1; i < sides.size(); ++i) {
    out.comparisons.push_back(PairOfSides(sides, i, options).run(rule_confidence));
  }
  judge(out);
  return out;
}

}  // namespace prony::compare
