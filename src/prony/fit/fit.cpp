#include "prony/fit/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "prony/stats/student_t.hpp"

namespace prony::fit {
namespace {

constexpr int kIterationsMax = 500;
constexpr double kConfidence = 0.95;

std::vector<double> weights_of(const Sample& sample, Residuals residuals) {
  std::vector<double> out(sample.y.size(), 1.0);
  if (residuals == Residuals::kRelative) {
    for (size_t row = 0; row < out.size(); ++row) out[row] = 1 / std::abs(sample.y[row]);
  }
  return out;
}

struct Descent {
  std::vector<double> p;
  double squares = 0;
  int iterations = 0;
  bool converged = false;
};

class Problem {
 public:
  Problem(const Model& model, const Sample& sample, std::span<const double> weights)
      : model_(model), sample_(sample), weights_(weights) {}

  double squares(std::span<const double> p) const {
    double sum = 0;
    for (size_t row = 0; row < sample_.y.size(); ++row) {
      const double r = residual(row, p);
      sum += r * r;
    }
    for (size_t i = 0; i < model_.prior.size(); ++i) sum += pull(i, p) * pull(i, p);
    return sum;
  }

  std::vector<double> residuals(std::span<const double> p) const {
    std::vector<double> out(sample_.y.size());
    for (size_t row = 0; row < out.size(); ++row) out[row] = residual(row, p);
    for (size_t i = 0; i < model_.prior.size(); ++i) out.push_back(pull(i, p));
    return out;
  }

  /// Of the rows, and below them those of the prior unless it shall show what the data alone fix.
  Matrix jacobian(std::span<const double> p, bool with_prior = true) const {
    const size_t data = sample_.y.size(), pulls = with_prior ? model_.prior.size() : 0;
    Matrix out(data + pulls, p.size());
    for (size_t i = 0; i < pulls; ++i) out.at(data + i, i) = pull_weight(i);
    for (size_t row = 0; row < data; ++row) {
      model_.gradient(sample_.x.row(row), p, out.row(row));
      for (double& slope : out.row(row)) slope *= weights_[row];
    }
    return out;
  }

  Descent descend(std::vector<double> p) const {
    Descent out{std::move(p), 0, 0, false};
    out.squares = squares(out.p);
    const double floor = 1e-28 * scale();
    double lambda = 1e-3;
    while (out.iterations < kIterationsMax && !out.converged) {
      ++out.iterations;
      if (out.squares <= floor) {
        out.converged = true;
        break;
      }
      const Svd svd = scaled_svd(jacobian(out.p));
      const auto r = residuals(out.p);
      bool better = false;
      for (int attempt = 0; attempt < 40 && !better; ++attempt) {
        const auto step = solve(svd, r, lambda);
        std::vector<double> next = out.p;
        double moved = 0;
        for (size_t i = 0; i < next.size(); ++i) {
          next[i] += step[i];
          moved = std::max(moved, std::abs(step[i]) / (std::abs(out.p[i]) + 1e-300));
        }
        const double squares_next = squares(next);
        if (std::isfinite(squares_next) && squares_next <= out.squares) {
          better = true;
          out.converged = moved < 1e-11 || out.squares - squares_next <= 1e-15 * out.squares;
          out.p = std::move(next);
          out.squares = squares_next;
          lambda = std::max(lambda / 10, 1e-15);
        } else {
          lambda = std::max(lambda * 10, 1e-12);
        }
      }
      if (!better) out.converged = true;  // no step of any length improves: a minimum to rounding
    }
    return out;
  }

 private:
  double pull_weight(size_t i) const {
    return std::sqrt(static_cast<double>(sample_.y.size())) * kSharedError / model_.prior[i];
  }
  double pull(size_t i, std::span<const double> p) const { return pull_weight(i) * (1 - p[i]); }
  double residual(size_t row, std::span<const double> p) const {
    return (sample_.y[row] - model_.value(sample_.x.row(row), p)) * weights_[row];
  }
  double scale() const {
    double sum = 0;
    for (size_t row = 0; row < sample_.y.size(); ++row) {
      sum += sample_.y[row] * sample_.y[row] * weights_[row] * weights_[row];
    }
    return sum;
  }

  const Model& model_;
  const Sample& sample_;
  std::span<const double> weights_;
};

Result<void> check_sample(const Model& model, const Sample& sample, Residuals residuals) {
  const size_t rows = sample.y.size();
  if (rows < model.parameters.size()) {
    return invalid_argument(fmt::format("{} rows, expected at least the {} parameters of {}", rows,
                                        model.parameters.size(), model.name));
  }
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < model.inputs.size(); ++i) {
      const double value = sample.x.at(row, i);
      if (!std::isfinite(value) || (model.inputs[i].positive && value <= 0)) {
        return invalid_argument(fmt::format("row {}: {} is {}, expected a positive number", row + 1,
                                            model.inputs[i].name, value));
      }
    }
    const double y = sample.y[row];
    const bool positive = model.output.positive;
    if (!std::isfinite(y) || (positive && y <= 0) ||
        (residuals == Residuals::kRelative && y == 0)) {
      return invalid_argument(fmt::format("row {}: {} is {}, expected {}", row + 1,
                                          model.output.name, y,
                                          positive ? "a positive number" : "not zero"));
    }
  }
  return {};
}

Result<Descent> descend(const Model& model, const Sample& sample, std::span<const double> weights) {
  const Problem problem(model, sample, weights);
  auto start = model.start(sample.x, sample.y, weights);
  if (!std::isfinite(problem.squares(start))) {
    return failed(fmt::format("{}: no finite start; do the inputs vary?", model.name));
  }
  return problem.descend(std::move(start));
}

void find_weak(const Svd& svd, Fit& out) {
  for (size_t i = 0; i < svd.sigma.size(); ++i) {
    const double relative = svd.sigma.front() > 0 ? svd.sigma[i] / svd.sigma.front() : 0;
    if (relative >= kWeakSigma) continue;
    WeakDirection weak;
    weak.relative_sigma = relative;
    for (size_t p = 0; p < out.parameters.size(); ++p) {
      const double weight = svd.v.at(p, i);
      if (std::abs(weight) < 0.1) continue;
      weak.parameters.push_back(p);
      weak.weights.push_back(weight);
      if (relative <= kRankTolerance) {
        out.parameters[p].identified = false;
        out.parameters[p].standard_error.reset();
      }
    }
    out.weak.push_back(std::move(weak));
  }
}

Sample subset(const Sample& sample, const std::string& group, bool inside) {
  Sample out;
  std::vector<size_t> rows;
  for (size_t row = 0; row < sample.y.size(); ++row) {
    if ((sample.groups[row] == group) == inside) rows.push_back(row);
  }
  out.x = Matrix(rows.size(), sample.x.columns());
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy(sample.x.row(rows[i]).begin(), sample.x.row(rows[i]).end(), out.x.row(i).begin());
    out.y.push_back(sample.y[rows[i]]);
  }
  return out;
}

CrossValidation cross_validate(const Model& model, const Sample& sample, Residuals residuals) {
  CrossValidation out;
  if (sample.groups.empty()) {
    out.reason = "no group column: rows of one system are not independent, name one with --group";
    return out;
  }
  auto groups = sample.groups;
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  if (groups.size() < 2) {
    out.reason = "only one group: nothing can be left out";
    return out;
  }
  double absolute = 0, signed_sum = 0;
  int64_t rows = 0;
  for (const auto& group : groups) {
    const Sample rest = subset(sample, group, false), held = subset(sample, group, true);
    if (rest.y.size() < model.parameters.size()) {
      return {
          fmt::format("without group {} there are fewer rows than parameters", group), {}, {}, {}};
    }
    const auto weights = weights_of(rest, residuals);
    const auto found = descend(model, rest, weights);
    if (!found) return {fmt::format("without group {} there is no fit", group), {}, {}, {}};
    FoldError fold{group, static_cast<int64_t>(held.y.size()), 0, 0};
    for (size_t row = 0; row < held.y.size(); ++row) {
      const double error = model.value(held.x.row(row), found->p) / held.y[row] - 1;
      fold.mape += std::abs(error);
      fold.bias += error;
    }
    absolute += fold.mape;
    signed_sum += fold.bias;
    rows += fold.rows;
    fold.mape /= static_cast<double>(fold.rows);
    fold.bias /= static_cast<double>(fold.rows);
    out.folds.push_back(std::move(fold));
  }
  out.mape = absolute / static_cast<double>(rows);
  out.bias = signed_sum / static_cast<double>(rows);
  return out;
}

// n ln(RSS/n) + k ln n of a straight line less that of the knee.
double knee_evidence(const Sample& sample, std::span<const double> weights, double squares) {
  Matrix a(sample.y.size(), 2);
  std::vector<double> b(sample.y.size());
  double scale = 0;
  for (size_t row = 0; row < b.size(); ++row) {
    a.at(row, 0) = weights[row];
    a.at(row, 1) = weights[row] * sample.x.at(row, 0);
    b[row] = weights[row] * sample.y[row];
    scale += b[row] * b[row];
  }
  const auto p = solve(scaled_svd(a), b);
  double straight = 0;
  for (size_t row = 0; row < b.size(); ++row) {
    const double r = b[row] - a.at(row, 0) * p[0] - a.at(row, 1) * p[1];
    straight += r * r;
  }
  const double n = static_cast<double>(b.size()), floor = 1e-26 * scale;
  return n * std::log(std::max(straight, floor) / std::max(squares, floor)) - 2 * std::log(n);
}

}  // namespace

Result<Fit> fit(const Model& model, const Sample& sample, Residuals residuals) {
  if (auto checked = check_sample(model, sample, residuals); !checked) return checked.error();
  const auto weights = weights_of(sample, residuals);
  const auto found = descend(model, sample, weights);
  if (!found) return found.error();

  Fit out;
  out.model = &model;
  out.rows = static_cast<int64_t>(sample.y.size());
  out.iterations = found->iterations;
  out.converged = found->converged;
  const size_t rows = sample.y.size(), count = found->p.size();
  const double degrees = static_cast<double>(rows) - static_cast<double>(count);
  const double variance = degrees > 0 ? found->squares / degrees : 0;
  out.residual_sd = std::sqrt(variance);
  const Svd svd = scaled_svd(Problem(model, sample, weights).jacobian(found->p));
  const Svd seen = scaled_svd(Problem(model, sample, weights).jacobian(found->p, false));
  out.condition = seen.condition();
  out.covariance = inverse_gram(svd);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) out.covariance.at(i, j) *= variance;
    Estimate estimate{found->p[i], {}, {}, {}, true};
    if (!std::isfinite(estimate.value)) return failed(fmt::format("{}: no finite fit", model.name));
    if (degrees > 0) estimate.standard_error = std::sqrt(std::max(0.0, out.covariance.at(i, i)));
    out.parameters.push_back(estimate);
  }
  find_weak(seen, out);
  const double t = degrees > 0 ? stats::student_t_two_sided(kConfidence, degrees) : 0;
  for (auto& estimate : out.parameters) {
    if (!estimate.standard_error) continue;
    estimate.low95 = estimate.value - t * *estimate.standard_error;
    estimate.high95 = estimate.value + t * *estimate.standard_error;
  }

  double mean = 0, total = 0, left = 0;
  for (const double y : sample.y) mean += y / static_cast<double>(rows);
  for (size_t row = 0; row < rows; ++row) {
    Point point = predict(out, sample.x.row(row), residuals);
    point.measured = sample.y[row];
    point.residual = point.measured - point.fitted;
    if (degrees <= 0) {
      point.confidence95.reset();
      point.prediction95.reset();
    }
    out.mape += std::abs(point.residual / point.measured) / static_cast<double>(rows);
    left += point.residual * point.residual;
    total += (point.measured - mean) * (point.measured - mean);
    out.points.push_back(point);
  }
  if (total > 0) out.r_squared = 1 - left / total;
  out.cross_validation = cross_validate(model, sample, residuals);
  if (model.name == "knee") out.knee_evidence = knee_evidence(sample, weights, found->squares);
  return out;
}

Point predict(const Fit& fit, std::span<const double> x, Residuals residuals) {
  std::vector<double> p, slope(fit.parameters.size());
  for (const auto& estimate : fit.parameters) p.push_back(estimate.value);
  Point out;
  out.fitted = fit.model->value(x, p);
  const double degrees = static_cast<double>(fit.rows) - static_cast<double>(fit.parameters.size());
  fit.model->gradient(x, p, slope);
  double variance = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    for (size_t j = 0; j < p.size(); ++j) variance += slope[i] * fit.covariance.at(i, j) * slope[j];
  }
  const double noise =
      fit.residual_sd * (residuals == Residuals::kRelative ? std::abs(out.fitted) : 1);
  const double t = stats::student_t_two_sided(kConfidence, std::max(1.0, degrees));
  out.confidence95 = t * std::sqrt(std::max(0.0, variance));
  out.prediction95 = t * std::sqrt(std::max(0.0, variance) + noise * noise);
  return out;
}

std::vector<std::string> identifiability(const Fit& fit) {
  std::vector<std::string> out;
  const auto name = [&fit](size_t i) { return std::string(fit.model->parameters[i].name); };
  if (static_cast<size_t>(fit.rows) == fit.parameters.size()) {
    out.push_back(
        fmt::format("{} rows for {} parameters: the curve passes through every row, and "
                    "neither errors nor bands can be told",
                    fit.rows, fit.parameters.size()));
  }
  for (const auto& weak : fit.weak) {
    std::vector<std::string> names;
    for (const size_t i : weak.parameters) names.push_back(name(i));
    out.push_back(fmt::format("{}: the data {} (relative singular value {:.1e})",
                              fmt::join(names, " and "),
                              weak.relative_sigma <= kRankTolerance
                                  ? (names.size() > 1 ? "cannot tell them apart" : "do not fix it")
                                  : (names.size() > 1 ? "barely tell them apart" : "barely fix it"),
                              weak.relative_sigma));
  }
  for (size_t i = 0; i < fit.parameters.size(); ++i) {
    const auto& estimate = fit.parameters[i];
    if (!estimate.low95 || *estimate.low95 > 0 || *estimate.high95 < 0) continue;
    out.push_back(fmt::format("{}: the 95 % interval {:.4g} to {:.4g} includes zero", name(i),
                              *estimate.low95, *estimate.high95));
  }
  return out;
}

}  // namespace prony::fit
