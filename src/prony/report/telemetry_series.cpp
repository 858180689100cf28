#include "prony/report/telemetry_series.hpp"

#include <algorithm>
#include <cmath>

namespace prony::report {
namespace {

using core::Json;

constexpr size_t kPointsMax = 400;

const Json* member(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() ? nullptr : &*found;
}

std::string text_of(const Json& json, const char* key) {
  const Json* found = member(json, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

bool changes(const TelemetrySeries& series) {
  return std::any_of(series.values.begin(), series.values.end(),
                     [&](double value) { return value != series.values.front(); });
}

}  // namespace

std::vector<TelemetrySeries> read_telemetry(const Json& telemetry) {
  std::vector<TelemetrySeries> out;
  const Json* all = member(telemetry, "series");
  if (all == nullptr || !all->is_array()) return out;
  for (const Json& one : *all) {
    const Json* t = member(one, "t_ns");
    const Json* values = member(one, "values");
    if (t == nullptr || values == nullptr || !t->is_array() || !values->is_array()) continue;
    TelemetrySeries series = {
        text_of(one, "name"), text_of(one, "unit"), text_of(one, "source"), {}, {}};
    for (size_t i = 0; i < std::min(t->size(), values->size()); ++i) {
      // A sample that failed is null.
      if (!(*t)[i].is_number_integer() || !(*values)[i].is_number()) continue;
      const auto value = (*values)[i].get<double>();
      if (!std::isfinite(value)) continue;
      series.t_ns.push_back((*t)[i].get<core::Nanos>());
      series.values.push_back(value);
    }
    if (!series.values.empty()) out.push_back(std::move(series));
  }
  if (out.size() > kTelemetrySeriesMax) {
    std::stable_partition(out.begin(), out.end(), changes);
    out.resize(kTelemetrySeriesMax);
  }
  return out;
}

std::vector<std::string> telemetry_notes(const Json& telemetry) {
  std::vector<std::string> out;
  const Json* notes = member(telemetry, "notes");
  if (notes == nullptr || !notes->is_array()) return out;
  for (const Json& note : *notes) {
    if (note.is_string()) out.push_back(note.get<std::string>());
  }
  return out;
}

Json telemetry_series(const Json& telemetry, core::Nanos origin_ns) {
  Json out = Json::array();
  for (const auto& series : read_telemetry(telemetry)) {
    const size_t n = series.values.size(), shown = std::min(n, kPointsMax);
    Json t = Json::array(), v = Json::array();
    for (size_t i = 0; i < shown; ++i) {
      const size_t at = shown < 2 ? 0 : i * (n - 1) / (shown - 1);
      t.push_back(std::round(static_cast<double>(series.t_ns[at] - origin_ns) / 1e6) / 1e3);
      v.push_back(series.values[at]);
    }
    out.push_back({{"name", series.name},
                   {"unit", series.unit},
                   {"source", series.source},
                   {"t", std::move(t)},
                   {"v", std::move(v)}});
  }
  return out;
}

}  // namespace prony::report
