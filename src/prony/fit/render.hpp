// A fit as JSON (prony.fit/1) and as text with a plot of its residuals.
// Thread safety: pure functions.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "prony/core/json.hpp"
#include "prony/fit/decay.hpp"
#include "prony/fit/fit.hpp"

namespace prony::fit {

inline constexpr const char* kFitSchema = "prony.fit/1";

core::Json fit_json(const Fit& fit, Residuals residuals);
std::string fit_table(const Fit& fit, Residuals residuals);
/// Relative residuals over the fitted values, both axes linear in their ranks' values: a pattern
/// here is what the closed form does not have.
std::string residual_plot(const Fit& fit);

/// The knee by the rule of decay.hpp, for a sweep with a column of the bandwidth's use in any
/// order.
struct RuleKnee {
  std::optional<double> x;  // last good input; nullopt: the rule finds none
  core::Json json;
  std::string text;
};
RuleKnee rule_knee(const Sample& sample, std::span<const double> bandwidth_fraction);

core::Json decay_json(std::span<const DecayBand> bands);
std::string decay_table(std::span<const DecayBand> bands);

}  // namespace prony::fit
