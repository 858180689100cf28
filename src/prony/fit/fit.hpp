// Fits one closed form to rows: Levenberg-Marquardt in float64 on analytic gradients, then what a
// calibration owes its reader: standard errors, bands, residuals, the error on groups that were
// left out, and which parameters the data do not fix.
// Thread safety: values and pure functions. Source: Marquardt, SIAM J. Appl. Math. 11(2), 1963.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/fit/models.hpp"

namespace prony::fit {

/// Rows for one model. `groups` is empty or has one name a row; rows of one group leave together.
struct Sample {
  Matrix x{0, 0};  // [rows, inputs]
  std::vector<double> y;
  std::vector<std::string> groups;
};

struct Estimate {
  double value = 0;
  std::optional<double> standard_error;  // nullopt: no residual degrees of freedom, or not fixed
  std::optional<double> low95, high95;   // value -+ t * standard error
  bool identified = true;                // false: some data-blind direction moves it
};

/// A combination of parameters that the data barely fix: relative singular value and the
/// parameters that take part, with their weights in units of their own scale.
struct WeakDirection {
  double relative_sigma = 0;
  std::vector<size_t> parameters;
  std::vector<double> weights;
};

struct Point {
  double measured = 0, fitted = 0;
  double residual = 0;                 // measured - fitted
  std::optional<double> confidence95;  // half width of the band of the curve
  std::optional<double> prediction95;  // and of a further measurement
};

struct FoldError {
  std::string group;
  int64_t rows = 0;
  double mape = 0, bias = 0;  // mean of |error| / measured, of error / measured
};

struct CrossValidation {
  std::string reason;  // why there is none; empty if there is
  std::vector<FoldError> folds;
  std::optional<double> mape, bias;  // over rows
};

struct Fit {
  const Model* model = nullptr;
  int64_t rows = 0;
  std::vector<Estimate> parameters;
  Matrix covariance{0, 0};  // [parameters, parameters]
  std::vector<Point> points;
  double residual_sd = 0;  // of the weighted residuals, with n - p degrees of freedom
  double mape = 0;         // on the rows fitted: no measure of prediction
  std::optional<double> r_squared;
  double condition = 0;  // of the Jacobian with columns of norm one
  std::vector<WeakDirection> weak;
  CrossValidation cross_validation;
  int iterations = 0;
  bool converged = false;
  // Knee only: improvement of the sum of squares over one straight line, as a difference of BIC;
  // above kKneeEvidence there is a knee.
  std::optional<double> knee_evidence;
};
inline constexpr double kKneeEvidence = 6;  // "strong" in Kass & Raftery, JASA 90, 1995
inline constexpr double kWeakSigma =
    1e-3;  // relative singular value below which a direction is weak

/// Error: kInvalidArgument: fewer rows than parameters, or values outside the model's domain;
/// kFailed: no finite fit.
Result<Fit> fit(const Model& model, const Sample& sample, Residuals residuals);

/// Prediction at `x` with half widths of both bands.
Point predict(const Fit& fit, std::span<const double> x, Residuals residuals);

/// Sentences for people on what the data do not fix; empty if all is fixed.
std::vector<std::string> identifiability(const Fit& fit);

}  // namespace prony::fit
