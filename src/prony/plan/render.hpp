// The answer of a plan as JSON (prony.plan/1, docs/schema) and as a table for people.
// Thread safety: pure functions.
#pragma once
#include <string>

#include "prony/core/json.hpp"
#include "prony/perfmodel/error_band.hpp"
#include "prony/plan/plan.hpp"

namespace prony::plan {

inline constexpr const char* kPlanSchema = "prony.plan/1";

core::Json answer_json(const Question& question, const Answer& answer);
/// `lines` of the front at most, spread evenly over it.
std::string answer_table(const Question& question, const Answer& answer, size_t lines);

/// {"class", "rows", "tpot", "ttft", "throughput"}, each null or {"mape", "bias", "p90"}.
core::Json error_band_json(const perfmodel::ErrorBand& band);

/// "2 x TP4 PP2, fp8, 64 sequences".
std::string choice_text(const Choice& choice);

}  // namespace prony::plan
