#include "prony/record/telemetry_schema.hpp"

#include <fmt/format.h>

namespace prony::record {
namespace {

using core::Json;

// A table of one object: key, type, required. "?" behind a type: or null.
struct Field {
  const char* key;
  const char* type;
  bool required = true;
};

Json type_of(std::string_view type) {
  Json out;
  if (type.ends_with('?')) {
    out["type"] = Json::array({std::string(type.substr(0, type.size() - 1)), "null"});
  } else {
    out["type"] = std::string(type);
  }
  return out;
}

template <size_t n>
Json object_of(const Field (&fields)[n]) {
  Json out;
  out["type"] = "object";
  out["required"] = Json::array();
  for (const auto& field : fields) {
    if (field.required) out["required"].push_back(field.key);
    out["properties"][field.key] = type_of(field.type);
  }
  out["additionalProperties"] = false;
  return out;
}

Json array_of(Json items) {
  Json out;
  out["type"] = "array";
  out["items"] = std::move(items);
  return out;
}

Json map_of(Json values) {
  Json out;
  out["type"] = "object";
  out["additionalProperties"] = std::move(values);
  return out;
}

Json series_schema() {
  constexpr Field kFields[] = {{"name", "string"}, {"unit", "string"}, {"source", "string"},
                               {"n", "integer"},   {"mean", "number"}, {"min", "number"},
                               {"max", "number"},  {"t_ns", "array"},  {"values", "array"}};
  auto out = object_of(kFields);
  out["properties"]["n"]["minimum"] = 1;
  out["properties"]["t_ns"]["items"] = type_of("integer");
  out["properties"]["values"]["items"] = type_of("number");
  return out;
}

Json server_schema() {
  constexpr Field kCheck[] = {{"what", "string"},
                              {"unit", "string"},
                              {"client", "number"},
                              {"server", "number"},
                              {"relative_difference", "number"},
                              {"agree", "boolean"}};
  constexpr Field kCache[] = {{"queries_tokens", "number"},
                              {"hits_tokens", "number"},
                              {"hit_fraction", "number"},
                              {"implied_fraction", "number?"},
                              {"as_implied", "boolean?"}};
  constexpr Field kFields[] = {{"names", "string"},
                               {"scrapes", "integer"},
                               {"failed_scrapes", "integer"},
                               {"scrape_ms_mean", "number?"},
                               {"scrape_ms_max", "number"},
                               {"bad_lines", "integer"},
                               {"differences", "object", false},
                               {"checks", "array", false},
                               {"others_seen", "boolean", false},
                               {"prefix_cache", "object", false}};
  auto out = object_of(kFields);
  auto& properties = out["properties"];
  properties["differences"] = map_of(type_of("number?"));
  properties["checks"] = array_of(object_of(kCheck));
  properties["prefix_cache"] = object_of(kCache);
  return out;
}

Json host_schema() {
  constexpr Field kCore[] = {{"core", "integer"}, {"busy", "number?"}, {"steal", "number?"}};
  constexpr Field kFields[] = {{"busy", "number?"},
                               {"steal", "number?"},
                               {"cores", "array"},
                               {"memory_total_bytes", "integer?"},
                               {"memory_used_max_bytes", "integer?"},
                               {"network_received_bytes", "integer?"},
                               {"network_sent_bytes", "integer?"},
                               {"energy_j", "object"}};
  auto out = object_of(kFields);
  out["properties"]["cores"] = array_of(object_of(kCore));
  out["properties"]["energy_j"] = map_of(type_of("number"));
  return out;
}

Json gpu_schema() {
  constexpr Field kFields[] = {{"index", "integer"},
                               {"slice", "integer?"},
                               {"name", "string"},
                               {"uuid", "string"},
                               {"memory_bytes", "integer"},
                               {"memory_used_max_bytes", "number?"},
                               {"busy_time_mean", "number?"},
                               {"gpm", "boolean"},
                               {"sm_active_mean", "number?"},
                               {"sm_occupancy_mean", "number?"},
                               {"tensor_active_mean", "number?"},
                               {"dram_bandwidth_mean", "number?"},
                               {"power_mean_w", "number?"},
                               {"power_limit_w", "number?"},
                               {"idle_power_w", "number?"},
                               {"sm_clock_mean_mhz", "number?"},
                               {"temperature_max_c", "number?"},
                               {"energy_j", "number?"},
                               {"energy_source", "string?"},
                               {"throttled_fraction", "object"}};
  auto out = object_of(kFields);
  out["properties"]["throttled_fraction"] = map_of(type_of("number"));
  return out;
}

Json energy_schema() {
  constexpr Field kFields[] = {{"duration_s", "number"},
                               {"gpus", "array"},
                               {"gpus_idle", "array"},
                               {"gpu_j", "number?"},
                               {"gpu_source", "string?"},
                               {"gpu_idle_share", "number?"},
                               {"gpu_j_per_output_token", "number?"},
                               {"gpu_j_per_token", "number?"},
                               {"cpu_j", "number?"},
                               {"cpu_j_per_output_token", "number?"}};
  auto out = object_of(kFields);
  for (const char* key : {"gpus", "gpus_idle"}) {
    out["properties"][key]["items"] = type_of("integer");
  }
  return out;
}

}  // namespace

Json telemetry_schema() {
  constexpr Field kFields[] = {{"interval_s", "number"},    {"t_begin_ns", "integer"},
                               {"t_end_ns", "integer"},     {"endpoint_is_local", "boolean"},
                               {"series", "array"},         {"server", "object", false},
                               {"host", "object"},          {"gpu", "array", false},
                               {"energy", "object", false}, {"notes", "array"}};
  auto out = object_of(kFields);
  auto& properties = out["properties"];
  properties["series"] = array_of(series_schema());
  properties["server"] = server_schema();
  properties["host"] = host_schema();
  properties["gpu"] = array_of(gpu_schema());
  properties["energy"] = energy_schema();
  properties["notes"] = array_of(type_of("string"));
  return out;
}

Result<void> check_telemetry(const Json& telemetry, std::string_view name) {
  const auto fault = [&](size_t i, std::string_view reason) -> Result<void> {
    return invalid_argument(fmt::format("{}: /telemetry/series/{}: {}", name, i, reason));
  };
  const auto& all = telemetry.at("series");
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& series = all[i];
    const auto &times = series.at("t_ns"), &values = series.at("values");
    if (times.size() != values.size()) {
      return fault(i, fmt::format("found {} values for {} times", values.size(), times.size()));
    }
    for (size_t k = 1; k < times.size(); ++k) {
      if (times[k] < times[k - 1]) {
        return fault(i, fmt::format("found t_ns {} after {}, expected times that never fall",
                                    times[k].dump(), times[k - 1].dump()));
      }
    }
    const auto &mean = series.at("mean"), &min = series.at("min"), &max = series.at("max");
    if (mean < min || mean > max) {
      return fault(
          i, fmt::format("found mean {}, expected {} to {}", mean.dump(), min.dump(), max.dump()));
    }
  }
  return {};
}

}  // namespace prony::record
