// Columns of the model `step` made from what a table of decode measurements has: the ideal time of
// a decode step on dense peaks and full bandwidth, and the number of layers, so that the fit finds
// the efficiency and the overheads of an (engine, GPU).
// Thread safety: pure functions; model and hardware files are read on every call.
#pragma once
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/fit/dataset.hpp"
#include "prony/fit/fit.hpp"

namespace prony::fit {

struct RooflineOptions {
  std::string hardware;     // catalogue id
  std::string engine;       // catalogue id; the model `engine` alone needs it
  double weight_bytes = 2;  // per element
  double kv_bytes = 2;      // per element
};

/// Ideal time of one decode step of `batch` sequences with `context` tokens each on `tp` devices
/// [ms]: the sum over operators of the larger of FLOPs / peak and bytes / bandwidth, both shared
/// evenly by the devices. Error: as the catalogue, for an unknown model or hardware.
struct RooflineStep {
  double roof_ms = 0, layers = 0;
};
Result<RooflineStep> roofline_step(const std::string& model, const RooflineOptions& options,
                                   int64_t batch, int64_t context, int64_t tp);

/// Needs columns model_id, batch, context and tp; gives roof_ms and layers, one a row.
struct RooflineColumns {
  std::vector<double> roof_ms, layers;
};
Result<RooflineColumns> roofline_columns(const Dataset& data, const RooflineOptions& options);

/// Rows of `data` for `model`: its columns by name, or for `step` without a column roof_ms those of
/// roofline_columns, for `engine` without device_ms those of engine_columns.hpp. `group` may be
/// empty. Error: a column is missing or holds no numbers.
Result<Sample> make_sample(const Model& model, const Dataset& data, const std::string& group,
                           const RooflineOptions& options);

}  // namespace prony::fit
