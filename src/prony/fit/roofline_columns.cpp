#include "prony/fit/roofline_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "prony/catalog/catalog.hpp"
#include "prony/catalog/hardware_file.hpp"
#include "prony/fit/engine_columns.hpp"
#include "prony/perfmodel/step_model.hpp"

namespace prony::fit {
namespace {

constexpr double kTokensMax = 1e7;

double peak_of(const catalog::HardwareSpec& hardware, double weight_bytes) {
  // Weights of eight bits may run on the eight-bit path; narrower ones are widened first.
  return weight_bytes == 1 && hardware.peak_fp8 > 0 ? hardware.peak_fp8 : hardware.peak_bf16;
}

RooflineStep roofline(const catalog::ModelSpec& spec, const catalog::HardwareSpec& hardware,
                      const RooflineOptions& options, int64_t batch, int64_t context, int64_t tp) {
  auto precision = perfmodel::uniform_precision(2);
  precision.linear = precision.expert = options.weight_bytes;
  precision.kv = options.kv_bytes;
  perfmodel::StepShape shape;
  shape.add({.context = context, .new_tokens = 1, .samples = true}, batch);
  const double peak = peak_of(hardware, options.weight_bytes) * static_cast<double>(tp);
  const double bandwidth = hardware.memory_bandwidth * static_cast<double>(tp);
  RooflineStep out;
  out.layers = spec.layers;
  for (const auto& op : perfmodel::StepModel(spec, precision).operators(shape)) {
    out.roof_ms += 1e3 * op.count * std::max(op.flops / peak, op.bytes() / bandwidth);
  }
  return out;
}

}  // namespace

Result<RooflineStep> roofline_step(const std::string& model, const RooflineOptions& options,
                                   int64_t batch, int64_t context, int64_t tp) {
  const auto spec = catalog::resolve_model(model);
  if (!spec) return spec.error();
  const auto hardware = catalog::resolve_hardware(options.hardware);
  if (!hardware) return hardware.error();
  return roofline(*spec, *hardware, options, batch, context, tp);
}

Result<RooflineColumns> roofline_columns(const Dataset& data, const RooflineOptions& options) {
  const auto hardware = catalog::resolve_hardware(options.hardware);
  if (!hardware) return hardware.error();
  const auto names = data.words("model_id");
  if (!names) return names.error();
  std::vector<std::vector<double>> numbers;
  for (const char* column : {"batch", "context", "tp"}) {
    auto values = data.numbers(column);
    if (!values) return values.error();
    for (const double value : *values) {
      if (!(value >= 1 && value <= kTokensMax)) {
        return invalid_argument(
            fmt::format("column {}: found {}, expected 1 to {:g}", column, value, kTokensMax));
      }
    }
    numbers.push_back(std::move(*values));
  }
  std::map<std::string, catalog::ModelSpec> specs;
  RooflineColumns out;
  for (size_t row = 0; row < names->size(); ++row) {
    const auto& name = (*names)[row];
    if (!specs.contains(name)) {
      auto spec = catalog::resolve_model(name);
      if (!spec) return spec.error();
      specs.emplace(name, std::move(*spec));
    }
    const auto whole = [&](size_t column) { return std::llround(numbers[column][row]); };
    const auto step = roofline(specs.at(name), *hardware, options, whole(0), whole(1), whole(2));
    out.roof_ms.push_back(step.roof_ms);
    out.layers.push_back(step.layers);
  }
  return out;
}

Result<Sample> make_sample(const Model& model, const Dataset& data, const std::string& group,
                           const RooflineOptions& options) {
  Sample out;
  std::vector<std::vector<double>> inputs;
  if (model.name == "step" && !data.find("roof_ms")) {
    if (options.hardware.empty()) {
      return invalid_argument("--hardware is missing: the model step needs it for its roofline");
    }
    auto made = roofline_columns(data, options);
    if (!made) return made.error();
    inputs = {std::move(made->roof_ms), std::move(made->layers)};
  } else if (model.name == "engine" && !data.find("device_ms")) {
    auto made = engine_columns(data, {options.hardware, options.engine});
    if (!made) return made.error();
    inputs = {std::move(made->device_ms), std::move(made->link_ms), std::move(made->engine_ms),
              std::move(made->rest_ms)};
    out.y = std::move(made->time_ms);
  } else {
    for (const auto& column : model.inputs) {
      auto values = data.numbers(column.name);
      if (!values) return values.error();
      inputs.push_back(std::move(*values));
    }
  }
  if (out.y.empty()) {
    auto y = data.numbers(model.output.name);
    if (!y) return y.error();
    out.y = std::move(*y);
  }
  out.x = Matrix(out.y.size(), inputs.size());
  for (size_t row = 0; row < out.y.size(); ++row) {
    for (size_t i = 0; i < inputs.size(); ++i) out.x.at(row, i) = inputs[i][row];
  }
  if (!group.empty()) {
    auto groups = data.words(group);
    if (!groups) return groups.error();
    out.groups = std::move(*groups);
  }
  return out;
}

}  // namespace prony::fit
