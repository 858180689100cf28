// prony predict for many questions: --sweep over combinations of flags, --rows over a file of them.
#include <fmt/format.h>

#include <algorithm>

#include "prony/cli/commands.hpp"
#include "prony/cli/predict_output.hpp"
#include "prony/core/file.hpp"

namespace prony::cli {
namespace {

Result<perfmodel::ServingPrediction> predict(const PredictOptions& options) {
  const auto deployment = deployment_of(options);
  if (!deployment) return deployment.error();
  const auto load = load_of(options);
  if (!load) return load.error();
  return perfmodel::predict_serving(*deployment, *load);
}

// "tp=1,2,4" as the arguments of each value.
Result<std::pair<std::string, std::vector<std::string>>> axis_of(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return invalid_argument(
        fmt::format("--sweep: found '{}', expected FLAG=V1,V2,... like tp=1,2,4", text));
  }
  std::vector<std::string> values;
  for (size_t begin = equals + 1; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    values.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return std::pair{text.substr(0, equals), values};
}

}  // namespace

int predict_sweep(const PredictOptions& options) {
  std::vector<std::vector<std::string>> points(1);
  for (const std::string& text : options.sweep) {
    const auto axis = axis_of(text);
    if (!axis) return report_error("predict", axis.error());
    std::vector<std::vector<std::string>> next;
    for (const auto& point : points) {
      for (const std::string& value : axis->second) {
        next.push_back(point);
        next.back().insert(next.back().end(), {"--" + axis->first, value});
      }
    }
    points = std::move(next);
  }
  core::Json rows = core::Json::array();
  if (!options.json) fmt::print("{}", sweep_header());
  for (const auto& point : points) {
    PredictOptions each = options;
    if (const auto set = apply_flags(each, point); !set)
      return report_error("predict", set.error());
    std::string name;
    core::Json row = core::Json::object();
    for (size_t i = 0; i + 1 < point.size(); i += 2) {
      name += fmt::format("{}{} {}", name.empty() ? "" : ", ", point[i].substr(2), point[i + 1]);
      row[point[i].substr(2)] = point[i + 1];
    }
    const auto prediction = predict(each);
    if (!prediction && prediction.error().code != ErrorCode::kFailed) {
      return report_error("predict", prediction.error());
    }
    if (prediction) {
      row.update(prediction_row(*prediction));
    } else {
      row["error"] = prediction.error().message;
    }
    rows.push_back(row);
    if (options.json) continue;
    fmt::print("{}", prediction ? sweep_line(name, *prediction)
                                : fmt::format("{:<36} {}\n", name, prediction.error().message));
  }
  if (!options.json) return kExitOk;
  const auto text = core::write_json({{"schema", "prony.predict/1"}, {"rows", rows}}, 2);
  if (!text) return report_error("predict", text.error());
  fmt::print("{}\n", *text);
  return kExitOk;
}

// One line of JSON in, one out; a question without an answer gives {"error": ...}.
int predict_rows(const PredictOptions& options) {
  const auto file = core::read_file(options.rows);
  if (!file) return report_error("predict", file.error());
  size_t number = 0;
  for (size_t begin = 0; begin < file->size();) {
    const size_t end = std::min(file->find('\n', begin), file->size());
    const std::string line = file->substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    const std::string name = fmt::format("{}:{}", options.rows, number);
    const auto json = core::parse_json(line, name);
    if (!json) return report_error("predict", json.error());
    if (!json->is_object()) {
      return report_error("predict", invalid_argument(name + ": expected an object of flags"));
    }
    Arguments arguments;
    for (const auto& [key, value] : json->items()) {
      const bool toggle = value.is_boolean();
      if (toggle && !value.get<bool>()) continue;
      arguments.push_back("--" + key);
      if (!toggle) arguments.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    PredictOptions each = options;
    core::Json row = core::Json::object();
    const auto set = apply_flags(each, arguments);
    const auto prediction = set ? predict(each) : Result<perfmodel::ServingPrediction>(set.error());
    if (prediction) {
      row = prediction_row(*prediction);
    } else {
      row["error"] = prediction.error().message;
    }
    const auto text = core::write_json(row);
    if (!text) return report_error("predict", text.error());
    fmt::print("{}\n", *text);
  }
  return kExitOk;
}

}  // namespace prony::cli
