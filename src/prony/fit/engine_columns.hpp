// Columns of the model `engine` made from a table of serving runs: how much of the time a token
// takes is kernels, collectives and the engine's host work, as the performance model predicts it.
// The parts are the derivatives of the predicted time in a factor on each, so that the fit finds
// the factors that `--calibration` puts on them.
// Thread safety: pure functions; model, hardware and engine files are read on every call.
#pragma once
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/fit/dataset.hpp"

namespace prony::fit {

struct EngineOptions {
  std::string hardware, engine;  // catalogue ids
};

/// Milliseconds a token, one row each; `rest` is what no factor moves.
struct EngineColumns {
  std::vector<double> device_ms, link_ms, engine_ms, rest_ms, time_ms;
};

/// Needs the columns model_id, tp, input_len, output_len, concurrency and one of tpot_ms and
/// output_throughput (tokens/s); may have weight_dtype, num_prompts and static (0 or 1). Rows of
/// throughput are fitted in the time between two tokens of the whole deployment.
/// Error: a missing column, an unknown model, or a row that the model cannot serve, by number.
Result<EngineColumns> engine_columns(const Dataset& data, const EngineOptions& options);

}  // namespace prony::fit
