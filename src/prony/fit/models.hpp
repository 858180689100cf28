// The closed forms that can be fitted: inputs, parameters with units, value, gradient and a start
// that needs no guess. All are functions of numbers of one row.
//   surface     T = B L / (alpha B L + beta B + gamma L + delta)     throughput over batch, length
//   power       y = a n^b + c                                        latency over length
//   alpha-beta  t = alpha + bytes / bandwidth                        collectives
//   knee        y = y0 + s1 x + (s2 - s1) max(0, x - knee)           two straight pieces
//   engine      t = device D + link L + engine E + rest            a token, over its predicted
//   parts step        t = roof / efficiency + per_layer layers + overhead  step time over its
//   roofline
// Thread safety: constant tables and pure functions.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/fit/linear.hpp"

namespace prony::fit {

struct Column {
  std::string_view name;
  bool positive = true;  // values <= 0 are refused; else any finite number
};

struct Parameter {
  std::string_view name;
  std::string_view unit;
};

/// How far a row is from the curve: in the output's unit, or as a share of the measured value.
enum class Residuals { kAbsolute, kRelative };

struct Model {
  std::string_view name, formula;
  std::vector<Column> inputs;
  Column output;
  std::vector<Parameter> parameters;
  Residuals residuals = Residuals::kRelative;
  /// Where not empty: how far each parameter may be expected from one. Rows of one system share
  /// their error, so more of them do not outweigh this: the sum of squares that is minimised has
  /// rows (kSharedError (p - 1)/prior)^2 more for each.
  std::vector<double> prior;
  double (*value)(std::span<const double> x, std::span<const double> p) = nullptr;
  /// d value / d p.
  void (*gradient)(std::span<const double> x, std::span<const double> p,
                   std::span<double> out) = nullptr;
  /// First parameters. x is [rows, inputs]; weights multiply residuals. At least as many rows as
  /// parameters.
  std::vector<double> (*start)(const Matrix& x, std::span<const double> y,
                               std::span<const double> weights) = nullptr;
};

inline constexpr double kSharedError = 0.04;  // relative, of a row

const std::vector<Model>& models();
/// Error: kInvalidArgument, listing the names.
Result<const Model*> find_model(std::string_view name);

}  // namespace prony::fit
