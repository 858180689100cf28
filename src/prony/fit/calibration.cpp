#include "prony/fit/calibration.hpp"

#include <fmt/format.h>

#include "prony/catalog/yaml_map.hpp"

namespace prony::fit {
namespace {

constexpr double kValueMax = 1e300;

// A YAML text in double quotes.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

}  // namespace

Calibration calibration_of(const Fit& fit, std::string ref) {
  Calibration out;
  out.model = fit.model->name;
  out.ref = std::move(ref);
  out.rows = fit.rows;
  out.held_out_mape = fit.cross_validation.mape;
  for (size_t i = 0; i < fit.parameters.size(); ++i) {
    const auto& parameter = fit.model->parameters[i];
    out.parameters.push_back({std::string(parameter.name), std::string(parameter.unit),
                              fit.parameters[i].value, fit.parameters[i].standard_error});
  }
  return out;
}

std::string calibration_text(const Calibration& calibration) {
  std::string out =
      fmt::format("calibration: {}\nmodel: {}\n", kCalibrationSchema, calibration.model);
  if (!calibration.hardware.empty()) out += fmt::format("hardware: {}\n", calibration.hardware);
  if (!calibration.engine.empty()) out += fmt::format("engine: {}\n", calibration.engine);
  out += fmt::format("rows: {}\n", calibration.rows);
  if (calibration.held_out_mape) {
    out += fmt::format("held_out_mape: {}\n", *calibration.held_out_mape);
  }
  out += fmt::format("refs:\n  data: {}\nparameters:\n", in_quotes(calibration.ref));
  for (const auto& parameter : calibration.parameters) {
    out += fmt::format("  {}: {{value: {}, unit: \"{}\", origin: measured, ref: data}}\n",
                       parameter.name, parameter.value, parameter.unit);
  }
  std::string errors;
  for (const auto& parameter : calibration.parameters) {
    if (!parameter.standard_error) continue;
    errors += fmt::format("  {}: {}\n", parameter.name, *parameter.standard_error);
  }
  if (!errors.empty()) out += "standard_errors:\n" + errors;
  return out;
}

Result<Calibration> parse_calibration(std::string_view text, std::string_view name) {
  const auto document = catalog::parse_yaml(text, name);
  if (!document) return document.error();
  catalog::YamlErrors errors(name);
  catalog::YamlMap top(*document, "", errors);
  const std::string_view kSchemas[] = {kCalibrationSchema};
  top.word("calibration", kSchemas);
  std::vector<std::string_view> names;
  for (const auto& model : models()) names.push_back(model.name);
  const auto& model = models()[top.word("model", names)];
  Calibration out;
  out.model = model.name;
  if (top.has("hardware")) out.hardware = top.text("hardware");
  if (top.has("engine")) out.engine = top.text("engine");
  out.rows = top.integer("rows", 1, 1'000'000'000);
  out.held_out_mape = top.maybe_number("held_out_mape", 0, kValueMax);
  const auto refs = top.refs("refs");
  if (const auto* ref = refs.find_text("data")) out.ref = *ref;
  auto parameters = top.map("parameters");
  auto deviations = top.maybe_map("standard_errors");
  for (const auto& parameter : model.parameters) {
    const catalog::Unit kUnits[] = {{parameter.unit, 1}};
    CalibratedParameter read{std::string(parameter.name), std::string(parameter.unit), 0, {}};
    read.value = parameters.quantity(parameter.name, kUnits, -kValueMax, kValueMax, refs).value;
    if (deviations) read.standard_error = deviations->maybe_number(parameter.name, 0, kValueMax);
    out.parameters.push_back(std::move(read));
  }
  parameters.done();
  if (deviations) deviations->done();
  top.done();
  if (!errors.empty()) return errors.first();
  return out;
}

}  // namespace prony::fit
