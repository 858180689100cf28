#include "prony/compare/side_runs.hpp"

#include <fmt/format.h>

#include <map>

#include "prony/record/slo_verdict.hpp"
#include "prony/stats/moments.hpp"

namespace prony::compare {
namespace {

std::optional<double> mean_of(const std::vector<double>& values) {
  stats::Moments moments;
  for (const double x : values) moments.add(x);
  return moments.mean();
}

// Empty where any run lacks it: a mean of those that have it would be of other runs.
std::vector<double> values_of(const SideInput& side, const core::SloTerm& term) {
  std::vector<double> out;
  for (const auto& run : side.runs) {
    const auto value = record::slo_value(term, run.metrics);
    if (!value) return {};
    out.push_back(*value);
  }
  return out;
}

std::map<std::string, const RunInput*> by_digest(const SideInput& side) {
  std::map<std::string, const RunInput*> out;
  for (const auto& run : side.runs) out[schedule_digest(run)] = &run;
  return out;
}

}  // namespace

std::string schedule_digest(const RunInput& run) {
  if (!run.record) return {};
  const auto& details = run.record->workload.details;
  const auto found = details.find("schedule_digest");
  return found != details.end() && found->is_string() ? found->get<std::string>() : std::string();
}

SideRuns::SideRuns(const SideInput& baseline, const SideInput& candidate)
    : baseline_(baseline), candidate_(candidate) {
  const auto a = by_digest(baseline), b = by_digest(candidate);
  if (a.contains("") || b.contains("")) return;
  if (a.size() != baseline.runs.size() || b.size() != a.size() ||
      b.size() != candidate.runs.size()) {
    return;
  }
  for (const auto& [digest, run] : a) {
    const auto partner = b.find(digest);
    if (partner == b.end()) return;
    partners_.emplace_back(run, partner->second);
  }
  paired_ = true;
}

MetricChange SideRuns::change(const core::SloTerm& term) const {
  MetricChange out;
  auto a = values_of(baseline_, term), b = values_of(candidate_, term);
  out.baseline = mean_of(a);
  out.candidate = mean_of(b);
  if (a.empty() || b.empty()) {
    out.method = "a run without this figure";
    return out;
  }
  out.samples = static_cast<int64_t>(a.size() + b.size());
  const bool fraction = term.metric == core::SloMetric::kErrorRate ||
                        term.metric == core::SloMetric::kGoodputFraction;
  if (paired_) {
    a.clear();
    b.clear();
    for (const auto& [left, right] : partners_) {
      a.push_back(*record::slo_value(term, left->metrics));
      b.push_back(*record::slo_value(term, right->metrics));
    }
    out.difference = paired_runs_difference(a, b);
    if (!fraction) out.relative = paired_runs_relative(a, b);
  } else {
    out.difference = runs_difference(a, b);
    if (!fraction) out.relative = runs_relative(a, b);
  }
  out.method = !out.difference ? "runs that do not differ have no spread"
               : paired_       ? "Student's t of runs in pairs"
                               : "Student's t of runs";
  return out;
}

}  // namespace prony::compare
