#include "prony/fit/engine_columns.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/engine_profile.hpp"
#include "prony/catalog/hardware_file.hpp"
#include "prony/perfmodel/serving.hpp"

namespace prony::fit {
namespace {

constexpr double kStep = 0.02;  // of the differences, relative
constexpr double kTokensMax = 1e7;

struct Row {
  perfmodel::Deployment deployment;
  perfmodel::ServingLoad load;
};

// Predicted time of a token [ms]: of one sequence, or of the deployment where throughput was
// measured.
Result<double> time_of(const Row& row, const perfmodel::Calibration& factors, bool throughput) {
  perfmodel::Deployment deployment = row.deployment;
  deployment.calibration = factors;
  auto predictor = perfmodel::ServingPredictor::make(deployment);
  if (!predictor) return predictor.error();
  const auto p = predictor->predict(row.load, perfmodel::Detail::kFigures);
  if (!p) return p.error();
  return 1e3 * (throughput ? 1 / p->output_throughput : p->tpot_s);
}

// A column of numbers in a range, or `fallback` for every row where there is none.
Result<std::vector<double>> column(const Dataset& data, const char* name, double min, double max,
                                   std::optional<double> fallback) {
  if (fallback && !data.find(name)) return std::vector<double>(data.rows(), *fallback);
  auto values = data.numbers(name);
  if (!values) return values.error();
  for (const double value : *values) {
    if (value >= min && value <= max) continue;
    return invalid_argument(
        fmt::format("column {}: found {}, expected {:g} to {:g}", name, value, min, max));
  }
  return *std::move(values);
}

Result<void> split(const Row& row, bool throughput, EngineColumns& out) {
  const auto whole = time_of(row, {}, throughput);
  if (!whole) return whole.error();
  double parts[3], rest = *whole;
  for (int part = 0; part < 3; ++part) {
    double side[2];
    for (int up = 0; up < 2; ++up) {
      perfmodel::Calibration factors;
      const double factor = up == 1 ? 1 + kStep : 1 - kStep;
      (part == 0 ? factors.device : part == 1 ? factors.link : factors.engine) = factor;
      const auto time = time_of(row, factors, throughput);
      if (!time) return time.error();
      side[up] = *time;
    }
    parts[part] = (side[1] - side[0]) / (2 * kStep);
    rest -= parts[part];
  }
  out.device_ms.push_back(parts[0]);
  out.link_ms.push_back(parts[1]);
  out.engine_ms.push_back(parts[2]);
  out.rest_ms.push_back(rest);
  return {};
}

}  // namespace

Result<EngineColumns> engine_columns(const Dataset& data, const EngineOptions& options) {
  if (options.hardware.empty()) return invalid_argument("--hardware is missing: engine needs it");
  if (options.engine.empty()) return invalid_argument("--engine is missing: engine needs it");
  const auto hardware = catalog::resolve_hardware(options.hardware);
  if (!hardware) return hardware.error();
  const auto engine = catalog::resolve_engine(options.engine);
  if (!engine) return engine.error();
  const auto names = data.words("model_id");
  if (!names) return names.error();
  std::vector<std::string> formats(data.rows(), "bf16");
  if (data.find("weight_dtype")) {
    auto words = data.words("weight_dtype");
    if (!words) return words.error();
    formats = *std::move(words);
  }
  const auto tp = column(data, "tp", 1, 4096, 1);
  const auto input = column(data, "input_len", 0, kTokensMax, std::nullopt);
  const auto output = column(data, "output_len", 2, kTokensMax, std::nullopt);
  const auto clients = column(data, "concurrency", 1, 1e6, std::nullopt);
  const auto prompts = column(data, "num_prompts", 0, 1e9, -1);
  const auto together = column(data, "static", 0, 1, 0);
  for (const auto* each : {&tp, &input, &output, &clients, &prompts, &together}) {
    if (!*each) return each->error();
  }
  const bool throughput = !data.find("tpot_ms");
  const auto measured = data.numbers(throughput ? "output_throughput" : "tpot_ms");
  if (!measured) return measured.error();

  std::map<std::string, catalog::ModelSpec> models;
  EngineColumns out;
  for (size_t i = 0; i < names->size(); ++i) {
    const std::string& name = (*names)[i];
    if (!models.contains(name)) {
      auto model = catalog::resolve_model(name);
      if (!model) return model.error();
      models.emplace(name, *std::move(model));
    }
    const auto dtype = perfmodel::parse_weight_dtype(formats[i]);
    if (!dtype) return dtype.error();
    Row row;
    row.deployment.model = models.at(name);
    row.deployment.hardware = *hardware;
    row.deployment.engine = *engine;
    row.deployment.parallel.tp = static_cast<int32_t>((*tp)[i]);
    row.deployment.weights = *dtype;
    row.deployment.kv = automatic_kv(*engine, row.deployment.model, *dtype);
    row.load = {.input_tokens = std::llround((*input)[i]),
                .output_tokens = std::llround((*output)[i]),
                .concurrency = (*clients)[i],
                .static_batch = (*together)[i] > 0};
    if ((*prompts)[i] >= 0) row.load.requests = (*prompts)[i];
    if (auto done = split(row, throughput, out); !done) {
      Error error = done.error();
      error.message = fmt::format("row {}: {}", i + 1, error.message);
      return error;
    }
    out.time_ms.push_back(throughput ? 1e3 / (*measured)[i] : (*measured)[i]);
  }
  return out;
}

}  // namespace prony::fit
