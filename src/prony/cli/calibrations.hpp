// Calibration files that prony predict and prony plan take: factors of one engine on one device.
// Thread safety: pure functions, but for the read of the files.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/perfmodel/deployment.hpp"

namespace prony::cli {

struct LoadedCalibration {
  std::string path, hardware, engine;
  int64_t rows = 0;
  std::optional<double> held_out_mape;
  perfmodel::Calibration factors;
};

/// Error: kInvalidArgument: no calibration of the model `engine`, one that is not bound to an
/// engine and a device, a factor outside [0.2, 5], or two files for the same; else as the file.
Result<std::vector<LoadedCalibration>> load_calibrations(const std::vector<std::string>& paths);

/// The one for this engine on this device (a slice is its own), or nullptr.
const LoadedCalibration* find_calibration(const std::vector<LoadedCalibration>& all,
                                          const std::string& hardware, const std::string& engine);

/// {"file", "rows", "held_out_mape", "device", "link", "engine"}.
core::Json calibration_json(const LoadedCalibration& calibration);

}  // namespace prony::cli
