#include "prony/cli/calibrations.hpp"

#include <fmt/format.h>

#include "prony/core/file.hpp"
#include "prony/fit/calibration.hpp"

namespace prony::cli {
namespace {

constexpr double kLeast = 0.2, kMost = 5;

Result<LoadedCalibration> load(const std::string& path) {
  const auto text = core::read_file(path);
  if (!text) return text.error();
  const auto read = fit::parse_calibration(*text, path);
  if (!read) return read.error();
  if (read->model != "engine") {
    return invalid_argument(fmt::format(
        "{}: model: found '{}', expected engine, the one whose parameters are factors of a step",
        path, read->model));
  }
  if (read->hardware.empty() || read->engine.empty()) {
    return invalid_argument(fmt::format("{}: hardware and engine: expected both", path));
  }
  LoadedCalibration out{path, read->hardware, read->engine, read->rows, read->held_out_mape, {}};
  for (const auto& parameter : read->parameters) {
    if (!(parameter.value >= kLeast && parameter.value <= kMost)) {
      return invalid_argument(fmt::format("{}: {}: found {}, expected a factor from {} to {}", path,
                                          parameter.name, parameter.value, kLeast, kMost));
    }
    if (parameter.name == "device") out.factors.device = parameter.value;
    if (parameter.name == "link") out.factors.link = parameter.value;
    if (parameter.name == "engine") out.factors.engine = parameter.value;
  }
  return out;
}

}  // namespace

Result<std::vector<LoadedCalibration>> load_calibrations(const std::vector<std::string>& paths) {
  std::vector<LoadedCalibration> out;
  for (const std::string& path : paths) {
    auto loaded = load(path);
    if (!loaded) return loaded.error();
    if (const auto* other = find_calibration(out, loaded->hardware, loaded->engine)) {
      return invalid_argument(fmt::format("--calibration: {} and {} are both of {} on {}",
                                          other->path, path, loaded->engine, loaded->hardware));
    }
    out.push_back(*std::move(loaded));
  }
  return out;
}

const LoadedCalibration* find_calibration(const std::vector<LoadedCalibration>& all,
                                          const std::string& hardware, const std::string& engine) {
  for (const LoadedCalibration& each : all) {
    if (each.hardware == hardware && each.engine == engine) return &each;
  }
  return nullptr;
}

core::Json calibration_json(const LoadedCalibration& calibration) {
  return {{"file", calibration.path},
          {"rows", calibration.rows},
          {"held_out_mape", calibration.held_out_mape ? core::Json(*calibration.held_out_mape)
                                                      : core::Json(nullptr)},
          {"device", calibration.factors.device},
          {"link", calibration.factors.link},
          {"engine", calibration.factors.engine}};
}

}  // namespace prony::cli
