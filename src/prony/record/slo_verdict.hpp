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
  std::optional<double> value;  // in the unit of the bound
  std::optional<bool> met;      // nullopt: undetermined
};
struct SloVerdict {
  std::vector<SloTermVerdict> terms;
  /// false if a term is broken, else nullopt if one is undetermined, else true.
  std::optional<bool> met;
};

/// The value a term speaks of; error_rate is failed / attempted.
std::optional<double> slo_value(const core::SloTerm& term, const Metrics& metrics);
SloVerdict evaluate_slo(const core::Slo& slo, const Metrics& metrics);
/// {"text", "met", "terms": [{"text", "value", "met"}]}, the record's section `slo`.
core::Json slo_verdict_to_json(const SloVerdict& verdict);

}  // namespace prony::record
