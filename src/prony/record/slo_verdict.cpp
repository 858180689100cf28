#include "prony/record/slo_verdict.hpp"

#include <algorithm>

#include "prony/record/latency_collector.hpp"

namespace prony::record {
namespace {

const LatencyStats* latency_of(core::SloMetric metric, const Metrics& metrics) {
  switch (metric) {
    case core::SloMetric::kTtft:
      return &metrics.ttft_ms;
    case core::SloMetric::kTpot:
      return &metrics.tpot_ms;
    case core::SloMetric::kItl:
      return &metrics.itl_ms;
    case core::SloMetric::kIcl:
      return &metrics.icl_ms;
    case core::SloMetric::kE2e:
      return &metrics.e2e_ms;
    case core::SloMetric::kTtftIntended:
      return &metrics.ttft_intended_ms;
    case core::SloMetric::kE2eIntended:
      return &metrics.e2e_intended_ms;
    default:
      return nullptr;
  }
}

std::optional<double> statistic_of(core::SloStatistic statistic, const LatencyStats& stats) {
  switch (statistic) {
    case core::SloStatistic::kMean:
      return stats.mean;
    case core::SloStatistic::kMin:
      return stats.min;
    case core::SloStatistic::kMax:
      return stats.max;
    case core::SloStatistic::kP50:
      return stats.p50;
    case core::SloStatistic::kP75:
      return stats.p75;
    case core::SloStatistic::kP90:
      return stats.p90;
    case core::SloStatistic::kP95:
      return stats.p95;
    case core::SloStatistic::kP99:
      return stats.p99;
    case core::SloStatistic::kP999:
      return stats.p999;
    case core::SloStatistic::kP9999:
      return stats.p9999;
    case core::SloStatistic::kNone:
      break;
  }
  return std::nullopt;
}

std::optional<stats::Interval> interval_of(core::SloStatistic statistic,
                                           const LatencyStats& stats) {
  switch (statistic) {
    case core::SloStatistic::kMean:
      return stats.ci95.mean;
    case core::SloStatistic::kP50:
      return stats.ci95.p50;
    case core::SloStatistic::kP90:
      return stats.ci95.p90;
    case core::SloStatistic::kP95:
      return stats.ci95.p95;
    case core::SloStatistic::kP99:
      return stats.ci95.p99;
    case core::SloStatistic::kP999:
      return stats.ci95.p999;
    case core::SloStatistic::kP9999:
      return stats.ci95.p9999;
    default:
      return std::nullopt;
  }
}

// How many values more a percentile needs to be shown.
int64_t samples_missing(const core::SloTerm& term, const Metrics& metrics) {
  const auto* stats = latency_of(term.metric, metrics);
  if (stats == nullptr) return 0;
  double q = 0;
  if (term.statistic == core::SloStatistic::kP90) q = 0.9;
  if (term.statistic == core::SloStatistic::kP95) q = 0.95;
  if (term.statistic == core::SloStatistic::kP99) q = 0.99;
  if (term.statistic == core::SloStatistic::kP999) q = 0.999;
  if (term.statistic == core::SloStatistic::kP9999) q = 0.9999;
  return std::max<int64_t>(0, samples_needed(q) - stats->n.value_or(0));
}

template <class T>
core::Json or_null(const std::optional<T>& value) {
  return value ? core::Json(*value) : core::Json(nullptr);
}

}  // namespace

std::optional<double> slo_value(const core::SloTerm& term, const Metrics& metrics) {
  if (const auto* stats = latency_of(term.metric, metrics)) {
    return statistic_of(term.statistic, *stats);
  }
  switch (term.metric) {
    case core::SloMetric::kGoodputFraction:
      return metrics.goodput_fraction;
    case core::SloMetric::kRequestThroughput:
      return metrics.request_throughput;
    case core::SloMetric::kOutputThroughput:
      return metrics.output_throughput;
    case core::SloMetric::kErrorRate:
      if (!metrics.failed || !metrics.attempted || *metrics.attempted == 0) return std::nullopt;
      return static_cast<double>(*metrics.failed) / static_cast<double>(*metrics.attempted);
    default:
      return std::nullopt;
  }
}

std::optional<stats::Interval> slo_interval(const core::SloTerm& term, const Metrics& metrics) {
  if (const auto* stats = latency_of(term.metric, metrics)) {
    return interval_of(term.statistic, *stats);
  }
  switch (term.metric) {
    case core::SloMetric::kGoodputFraction:
      return metrics.ci95.goodput_fraction;
    case core::SloMetric::kErrorRate:
      return metrics.ci95.error_rate;
    case core::SloMetric::kRequestThroughput:
      return metrics.ci95.request_throughput;
    case core::SloMetric::kOutputThroughput:
      return metrics.ci95.output_throughput;
    default:
      return std::nullopt;
  }
}

SloVerdict evaluate_slo(const core::Slo& slo, const Metrics& metrics) {
  SloVerdict out;
  bool broken = false, undetermined = false;
  for (const auto& term : slo.terms) {
    SloTermVerdict verdict{.term = term, .value = slo_value(term, metrics)};
    if (verdict.value) {
      verdict.met = term.holds(*verdict.value);
      verdict.ci95 = slo_interval(term, metrics);
    } else {
      verdict.samples_missing = samples_missing(term, metrics);
    }
    if (verdict.ci95) {
      verdict.certain = term.holds(verdict.ci95->lower) == *verdict.met &&
                        term.holds(verdict.ci95->upper) == *verdict.met;
    }
    broken = broken || verdict.met == std::optional(false);
    undetermined = undetermined || !verdict.met;
    out.terms.push_back(verdict);
  }
  if (broken) {
    out.met = false;
  } else if (!undetermined) {
    out.met = true;
  }
  return out;
}

core::Json slo_verdict_to_json(const SloVerdict& verdict) {
  core::Slo slo;
  core::Json terms = core::Json::array();
  for (const auto& term : verdict.terms) {
    slo.terms.push_back(term.term);
    core::Json json;
    json["text"] = core::slo_text(term.term);
    json["value"] = or_null(term.value);
    json["met"] = or_null(term.met);
    json["ci95"] =
        term.ci95 ? core::Json::array({term.ci95->lower, term.ci95->upper}) : core::Json(nullptr);
    json["certain"] = or_null(term.certain);
    json["samples_missing"] = term.samples_missing;
    terms.push_back(std::move(json));
  }
  core::Json out;
  out["text"] = core::slo_text(slo);
  out["met"] = or_null(verdict.met);
  out["terms"] = std::move(terms);
  return out;
}

}  // namespace prony::record
