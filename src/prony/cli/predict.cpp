// prony predict: latency, throughput, memory and bottleneck of a deployment, from the performance
// model and the catalogue. docs/predict.md is its manual.
#include <fmt/format.h>

#include "prony/cli/commands.hpp"
#include "prony/cli/predict_output.hpp"

namespace prony::cli {
namespace {

int one(const PredictOptions& options) {
  const auto deployment = deployment_of(options);
  if (!deployment) return report_error("predict", deployment.error());
  const auto load = load_of(options);
  if (!load) return report_error("predict", load.error());
  const auto prediction = perfmodel::predict_serving(*deployment, *load);
  if (!prediction) return report_error("predict", prediction.error());
  if (!options.json) {
    fmt::print("{}", prediction_table(*deployment, *load, *prediction));
    return kExitOk;
  }
  const auto text = record::record_text(predicted_record(options, *deployment, *load, *prediction));
  if (!text) return report_error("predict", text.error());
  fmt::print("{}", *text);
  return kExitOk;
}

}  // namespace

int run_predict(const Arguments& arguments) {
  PredictOptions options;
  Flags flags("predict", "latency, throughput, memory and bottleneck of a deployment");
  declare(flags, options);
  const auto parsed = flags.parse(arguments);
  if (!parsed) return report_error("predict", parsed.error());
  if (*parsed == Flags::Outcome::kHelp) {
    fmt::print("{}", flags.help());
    return kExitOk;
  }
  if (!options.rows.empty()) return predict_rows(options);
  return options.sweep.empty() ? one(options) : predict_sweep(options);
}

}  // namespace prony::cli
