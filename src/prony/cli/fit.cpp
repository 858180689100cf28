// prony fit: one closed form fitted to a table or to records, with errors, bands, left-out groups
// and what the data cannot tell; writes a calibration.
#include <fmt/format.h>

#include <cstdio>

#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/core/file.hpp"
#include "prony/fit/calibration.hpp"
#include "prony/fit/render.hpp"
#include "prony/fit/roofline_columns.hpp"

namespace prony::cli {
namespace {

struct Options {
  std::vector<std::string> files, columns, where;
  std::string model, group, residuals = "default", out;
  fit::RooflineOptions roofline;
  bool json = false;
};

// "NAME=VALUE" of a flag.
Result<std::pair<std::string, std::string>> pair_of(const char* flag, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return invalid_argument(fmt::format("{}: found '{}', expected NAME=VALUE", flag, text));
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Result<fit::Dataset> read(const Options& options) {
  auto data = fit::Dataset::read(options.files);
  if (!data) return data.error();
  for (const auto& text : options.where) {
    const auto pair = pair_of("--where", text);
    if (!pair) return pair.error();
    if (auto kept = data->keep(pair->first, pair->second); !kept) return kept.error();
  }
  for (const auto& text : options.columns) {
    const auto pair = pair_of("--column", text);
    if (!pair) return pair.error();
    if (auto named = data->alias(pair->second, pair->first); !named) return named.error();
  }
  return data;
}

Result<void> print(const Options& options, const core::Json& json, const std::string& table) {
  if (!options.json) {
    std::fputs(table.c_str(), stdout);
    return {};
  }
  const auto text = core::write_json(json, 2);
  if (!text) return text.error();
  std::fputs((*text + "\n").c_str(), stdout);
  return {};
}

Result<void> run_decay(const Options& options) {
  const auto data = read(options);
  if (!data) return data.error();
  const auto loads = data->words("load");
  const auto base = data->numbers("base"), observed = data->numbers("observed");
  if (!loads) return loads.error();
  if (!base) return base.error();
  if (!observed) return observed.error();
  const auto bands = fit::decay_bands(*loads, *base, *observed);
  if (!bands) return bands.error();
  return print(options, fit::decay_json(*bands), fit::decay_table(*bands));
}

Result<void> run(const Options& options) {
  if (options.model == "decay") return run_decay(options);
  if (options.model.empty()) {
    return invalid_argument("--model is missing, see fit --help for the closed forms");
  }
  const auto model = fit::find_model(options.model);
  if (!model) return model.error();
  auto residuals = model.value()->residuals;
  if (options.residuals == "absolute") residuals = fit::Residuals::kAbsolute;
  if (options.residuals == "relative") residuals = fit::Residuals::kRelative;
  const auto data = read(options);
  if (!data) return data.error();
  const auto rows = fit::make_sample(*model.value(), *data, options.group, options.roofline);
  if (!rows) return rows.error();
  const auto fitted = fit::fit(*model.value(), *rows, residuals);
  if (!fitted) return fitted.error();
  if (!options.out.empty()) {
    auto calibration =
        fit::calibration_of(*fitted, fmt::format("{}", fmt::join(options.files, ", ")));
    calibration.hardware = options.roofline.hardware;
    calibration.engine = options.roofline.engine;
    const auto text = fit::calibration_text(calibration);
    if (auto written = core::write_file_atomic(options.out, text); !written) return written.error();
  }
  auto json = fit::fit_json(*fitted, residuals);
  auto table = fit::fit_table(*fitted, residuals);
  if (options.model == "knee" && data->find("bandwidth_fraction")) {
    const auto used = data->numbers("bandwidth_fraction");
    if (!used) return used.error();
    const auto rule = fit::rule_knee(*rows, *used);
    json["knee_by_rule"] = rule.json;
    table += rule.text;
  }
  return print(options, json, table);
}

}  // namespace

int run_fit(const Arguments& arguments) {
  Options options;
  Flags flags("fit", "fit a closed form to measurements, and say what they cannot tell");
  flags.positional("FILE", options.files, "CSV files with a header, or records")
      .choice("--model", options.model,
              {"surface", "power", "alpha-beta", "knee", "step", "engine", "decay"},
              "the closed form")
      .list("--column", options.columns, "NAME=COLUMN: what the file calls a column of the model")
      .list("--where", options.where, "COLUMN=WORD: only these rows")
      .text("--group", options.group, "column whose values are left out one after the other")
      .choice("--residuals", options.residuals, {"default", "relative", "absolute"},
              "what is small")
      .text("--hardware", options.roofline.hardware, "catalogue id (step, engine: needed)")
      .text("--engine", options.roofline.engine, "catalogue id (engine: needed)")
      .number("--weight-bytes", options.roofline.weight_bytes, "per weight (step)")
      .number("--kv-bytes", options.roofline.kv_bytes, "per element of the KV cache (step)")
      .text("--out", options.out, "write the calibration to this file")
      .toggle("--json", options.json, "one JSON document on stdout");
  const auto outcome = flags.parse(arguments);
  if (!outcome) return report_error("fit", outcome.error());
  if (outcome.value() == Flags::Outcome::kHelp) {
    std::fputs(flags.help().c_str(), stdout);
    return kExitOk;
  }
  const auto done = run(options);
  return done ? kExitOk : report_error("fit", done.error());
}

}  // namespace prony::cli
