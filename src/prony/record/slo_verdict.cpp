#include "prony/record/slo_verdict.hpp"

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

SloVerdict evaluate_slo(const core::Slo& slo, const Metrics& metrics) {
  SloVerdict out;
  bool broken = false, undetermined = false;
  for (const auto& term : slo.terms) {
    SloTermVerdict verdict{term, slo_value(term, metrics), std::nullopt};
    if (verdict.value) verdict.met = term.holds(*verdict.value);
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
    terms.push_back(std::move(json));
  }
  core::Json out;
  out["text"] = core::slo_text(slo);
  out["met"] = or_null(verdict.met);
  out["terms"] = std::move(terms);
  return out;
}

}  // namespace prony::record
