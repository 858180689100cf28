// What prony predict prints: a Record with source "predicted", a line of JSON, or a table.
// Thread safety: pure functions.
#pragma once
#include <string>

#include "prony/cli/predict_options.hpp"
#include "prony/core/json.hpp"
#include "prony/record/record.hpp"

namespace prony::cli {

record::Record predicted_record(const PredictOptions& options,
                                const perfmodel::Deployment& deployment,
                                const perfmodel::ServingLoad& load,
                                const perfmodel::ServingPrediction& prediction);

/// The record's section `prediction`: parts, shares, memory, bottleneck, error band.
core::Json prediction_json(const perfmodel::Deployment& deployment,
                           const perfmodel::ServingLoad& load,
                           const perfmodel::ServingPrediction& prediction);

/// The figures of one row of --sweep and --rows.
core::Json prediction_row(const perfmodel::ServingPrediction& prediction);

std::string prediction_table(const perfmodel::Deployment& deployment,
                             const perfmodel::ServingLoad& load,
                             const perfmodel::ServingPrediction& prediction);

/// The header and one line of a sweep's table.
std::string sweep_header();
std::string sweep_line(const std::string& name, const perfmodel::ServingPrediction& prediction);

/// prony predict with --sweep and with --rows; the exit code.
int predict_sweep(const PredictOptions& options);
int predict_rows(const PredictOptions& options);

}  // namespace prony::cli
