#include "prony/fit/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace prony::fit {
namespace {

using core::Json;

Json number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json finite(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

std::string text(const std::optional<double>& value) {
  return value ? fmt::format("{:.4g}", *value) : "-";
}

const char* residual_name(Residuals residuals) {
  return residuals == Residuals::kRelative ? "relative" : "absolute";
}

}  // namespace

Json fit_json(const Fit& fit, Residuals residuals) {
  Json out = {{"schema", kFitSchema},
              {"model", std::string(fit.model->name)},
              {"formula", std::string(fit.model->formula)},
              {"residuals", residual_name(residuals)},
              {"rows", fit.rows},
              {"converged", fit.converged},
              {"iterations", fit.iterations}};
  out["parameters"] = Json::array();
  for (size_t i = 0; i < fit.parameters.size(); ++i) {
    const auto& estimate = fit.parameters[i];
    out["parameters"].push_back(
        {{"name", std::string(fit.model->parameters[i].name)},
         {"unit", std::string(fit.model->parameters[i].unit)},
         {"value", estimate.value},
         {"standard_error", number(estimate.standard_error)},
         {"ci95",
          estimate.low95 ? Json::array({*estimate.low95, *estimate.high95}) : Json(nullptr)},
         {"identified", estimate.identified}});
  }
  out["residual_sd"] = fit.residual_sd;
  out["mape_on_fitted_rows"] = fit.mape;
  out["r_squared"] = number(fit.r_squared);
  out["identifiability"] = {{"condition", finite(fit.condition)},
                            {"statements", identifiability(fit)}};
  Json folds = Json::array();
  for (const auto& fold : fit.cross_validation.folds) {
    folds.push_back(
        {{"group", fold.group}, {"rows", fold.rows}, {"mape", fold.mape}, {"bias", fold.bias}});
  }
  const auto& validation = fit.cross_validation;
  out["cross_validation"] = {
      {"mape", number(validation.mape)},
      {"bias", number(validation.bias)},
      {"reason", validation.reason.empty() ? Json(nullptr) : Json(validation.reason)},
      {"folds", std::move(folds)}};
  if (fit.knee_evidence) {
    out["knee"] = {{"bic_gain", *fit.knee_evidence},
                   {"supported", *fit.knee_evidence > kKneeEvidence}};
  }
  out["points"] = Json::array();
  for (const auto& point : fit.points) {
    out["points"].push_back({{"measured", point.measured},
                             {"fitted", point.fitted},
                             {"residual", point.residual},
                             {"confidence95", number(point.confidence95)},
                             {"prediction95", number(point.prediction95)}});
  }
  return out;
}

std::string residual_plot(const Fit& fit) {
  constexpr int kWidth = 60, kHeight = 9;
  double low = fit.points.front().fitted, high = low, span = 0;
  for (const auto& point : fit.points) {
    low = std::min(low, point.fitted);
    high = std::max(high, point.fitted);
    span = std::max(span, std::abs(point.residual / point.measured));
  }
  if (span == 0 || high == low) return "residuals: none to plot\n";
  std::vector<std::string> lines(kHeight, std::string(kWidth, ' '));
  lines[kHeight / 2].assign(kWidth, '-');
  for (const auto& point : fit.points) {
    const double x = (point.fitted - low) / (high - low);
    const double y = point.residual / point.measured / span;
    const auto column = static_cast<size_t>(std::lround(x * (kWidth - 1)));
    const auto line = static_cast<size_t>(std::lround((1 - y) / 2 * (kHeight - 1)));
    lines[line][column] = lines[line][column] == '*' || lines[line][column] == '#' ? '#' : '*';
  }
  std::string out =
      fmt::format("residuals / measured, over the fitted value (+-{:.2g} %)\n", 100 * span);
  for (const auto& line : lines) out += "  |" + line + "\n";
  out += fmt::format("   {:<30.4g}{:>30.4g}\n", low, high);
  return out;
}

std::string fit_table(const Fit& fit, Residuals residuals) {
  std::string out =
      fmt::format("{}: {}, {} rows, {} residuals{}\n", fit.model->name, fit.model->formula,
                  fit.rows, residual_name(residuals), fit.converged ? "" : ", NOT CONVERGED");
  out += fmt::format("  {:<12} {:>12} {:>12} {:>25}  {}\n", "parameter", "value", "std error",
                     "95 % interval", "unit");
  for (size_t i = 0; i < fit.parameters.size(); ++i) {
    const auto& estimate = fit.parameters[i];
    out += fmt::format("  {:<12} {:>12.5g} {:>12} {:>25}  {}\n", fit.model->parameters[i].name,
                       estimate.value, text(estimate.standard_error),
                       text(estimate.low95) + " to " + text(estimate.high95),
                       fit.model->parameters[i].unit);
  }
  out += fmt::format("error on the fitted rows {:.2f} %, R^2 {}, condition {:.3g}\n",
                     100 * fit.mape, text(fit.r_squared), fit.condition);
  const auto& validation = fit.cross_validation;
  if (!validation.reason.empty()) {
    out += fmt::format("error on rows left out: unknown, {}\n", validation.reason);
  } else {
    out += fmt::format("error on groups left out {:.2f} %, bias {:+.2f} %\n",
                       100 * *validation.mape, 100 * *validation.bias);
    for (const auto& fold : validation.folds) {
      out += fmt::format("  {:<28} {:>5} rows {:>8.2f} % {:>+8.2f} %\n", fold.group, fold.rows,
                         100 * fold.mape, 100 * fold.bias);
    }
  }
  if (fit.knee_evidence) {
    out += fmt::format("a knee {} over one straight line (BIC gain {:.1f}, {} asked)\n",
                       *fit.knee_evidence > kKneeEvidence ? "is supported" : "is NOT supported",
                       *fit.knee_evidence, kKneeEvidence);
  }
  const auto statements = identifiability(fit);
  for (const auto& statement : statements) out += "note: " + statement + "\n";
  if (statements.empty()) out += "the data fix every parameter\n";
  return out + residual_plot(fit);
}

RuleKnee rule_knee(const Sample& sample, std::span<const double> bandwidth_fraction) {
  std::vector<size_t> order(sample.y.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&sample](size_t a, size_t b) { return sample.x.at(a, 0) < sample.x.at(b, 0); });
  std::vector<double> throughput, used;
  for (const size_t row : order) {
    throughput.push_back(sample.y[row]);
    used.push_back(bandwidth_fraction[row]);
  }
  RuleKnee out;
  if (const auto found = knee_by_rule(throughput, used)) out.x = sample.x.at(order[*found], 0);
  out.json = {{"x", number(out.x)}, {"bandwidth_over", kKneeBandwidth}, {"fall_over", kKneeFall}};
  out.text =
      fmt::format("by the rule (bandwidth over {:.0f} %, throughput falls by {:.0f} %): {}\n",
                  100 * kKneeBandwidth, 100 * kKneeFall,
                  out.x ? fmt::format("knee at {:.6g}", *out.x) : "no knee");
  return out;
}

Json decay_json(std::span<const DecayBand> bands) {
  Json out = {
      {"schema", kFitSchema}, {"model", "decay"}, {"formula", "alpha = 1 - observed / base"}};
  out["bands"] = Json::array();
  for (const auto& band : bands) {
    out["bands"].push_back(
        {{"load", band.load},
         {"n", band.n},
         {"mean", band.mean},
         {"sd", number(band.sd)},
         {"ci95", band.low95 ? Json::array({*band.low95, *band.high95}) : Json(nullptr)},
         {"band", std::string(band.band)},
         {"certain", band.certain}});
  }
  return out;
}

std::string decay_table(std::span<const DecayBand> bands) {
  std::string out = fmt::format(
      "decay: alpha = 1 - observed / base\n  {:<24} {:>5} {:>9} {:>9} {:>21}"
      "  {}\n",
      "load", "n", "mean", "sd", "95 % of the mean", "band");
  for (const auto& band : bands) {
    out += fmt::format("  {:<24} {:>5} {:>9.4f} {:>9} {:>21}  {}{}\n", band.load, band.n, band.mean,
                       text(band.sd), text(band.low95) + " to " + text(band.high95), band.band,
                       band.certain ? "" : " (not certain)");
  }
  return out;
}

}  // namespace prony::fit
