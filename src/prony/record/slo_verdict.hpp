// Verdict of an Slo (core/slo.hpp) on the metrics of a record.
// A term whose value is null (too few samples, no model) is undetermined: neither kept nor broken,
// and said so. Thread safety: pure functions.
#pragma once
#include <optional>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/slo.hpp"
#include "prony/record/metrics.hpp"

namespace prony::record {

struct SloTermVerdict {
  core::SloTerm term;
  std::optional<double> value;          // in the unit of the bound
  std::optional<bool> met;              // nullopt: undetermined
  std::optional<stats::Interval> ci95;  // of the value
  std::optional<bool> certain;          // the whole interval is on the same side of the bound
  int64_t samples_missing = 0;          // more of them give a percentile its value
};
struct SloVerdict {
  std::vector<SloTermVerdict> terms;
  /// false if a term is broken, else nullopt if one is undetermined, else true.
  std::optional<bool> met;
};

/// The value a term speaks of; error_rate is failed / attempted.
std::optional<double> slo_value(const core::SloTerm& term, const Metrics& metrics);
SloVerdict evaluate_slo(const core::Slo& slo, const Metrics& metrics);
/// The interval of that value, where the record has one.
std::optional<stats::Interval> slo_interval(const core::SloTerm& term, const Metrics& metrics);
/// {"text", "met", "terms": [{"text", "value", "met", "ci95", "certain", "samples_missing"}]}, the
/// record's section `slo`.
core::Json slo_verdict_to_json(const SloVerdict& verdict);

}  // namespace prony::record
