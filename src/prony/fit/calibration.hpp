// Calibration: the overlay of the catalogue that `fit --out` writes and `--calibration FILE` reads:
// parameters by model, each with unit and origin, their errors and what they were fitted on.
// Thread safety: values and pure functions. Source: ours; docs/fit.md describes the format.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/fit/fit.hpp"

namespace prony::fit {

inline constexpr std::string_view kCalibrationSchema = "prony.calibration/1";

struct CalibratedParameter {
  std::string name, unit;
  double value = 0;
  std::optional<double> standard_error;
};

struct Calibration {
  std::string model;     // of models()
  std::string hardware;  // catalogue ids; empty: not bound to one
  std::string engine;
  std::string ref;  // files and columns it was fitted on
  int64_t rows = 0;
  std::optional<double> held_out_mape;
  std::vector<CalibratedParameter> parameters;
};

Calibration calibration_of(const Fit& fit, std::string ref);

/// YAML that parse_calibration reads back exactly.
std::string calibration_text(const Calibration& calibration);

/// `name` is the file, for messages. Error: kInvalidArgument, "NAME:LINE: ...": unknown model or
/// key, a parameter missing, a unit that is not the model's.
Result<Calibration> parse_calibration(std::string_view text, std::string_view name);

}  // namespace prony::fit
