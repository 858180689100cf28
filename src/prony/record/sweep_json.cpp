// The sweep as JSON, its schema, and the check of one against the other.
#include <algorithm>

#include "prony/record/json_schema.hpp"
#include "prony/record/sweep.hpp"

namespace prony::record {
namespace {

using core::Json;

// The part of a record's metrics that a cell repeats.
constexpr const char* kCellMetrics[] = {
    "attempted",         "completed",        "failed",
    "window_s",          "duration_s",       "requested_rate",
    "sent_rate",         "concurrency_mean", "request_throughput",
    "output_throughput", "total_throughput", "goodput",
    "goodput_fraction",  "steady",           "ttft_ms",
    "tpot_ms",           "itl_ms",           "e2e_ms",
    "ttft_intended_ms",  "e2e_intended_ms"};

constexpr std::string_view kSchemaText = R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "prony.sweep/1",
  "description": "Axes, cells and what is read off them; see docs/sweeps.md. null: not known.",
  "type": "object",
  "required": ["schema", "status", "started_at", "command", "label", "model", "seed",
    "num_runs", "axes", "targets", "environment", "cells", "points", "knees"],
  "properties": {
    "schema": {"const": "prony.sweep/1"},
    "status": {"enum": ["complete", "partial"]},
    "started_at": {"type": "string"},
    "command": {"type": "array", "items": {"type": "string"}},
    "label": {"type": "string"},
    "model": {"type": "string"},
    "seed": {"type": "integer", "minimum": 0},
    "num_runs": {"type": "integer", "minimum": 1},
    "axes": {"type": "array", "minItems": 1, "items": {
      "type": "object", "required": ["name", "values"], "additionalProperties": false,
      "properties": {"name": {"type": "string"},
                     "values": {"type": "array", "minItems": 1, "items": {"type": ["number",
                       "string"]}}}}},
    "targets": {"type": "array", "items": {
      "type": "object", "required": ["name", "url", "command"], "additionalProperties": false,
      "properties": {"name": {"type": "string"}, "url": {"type": ["string", "null"]},
                     "command": {"type": ["string", "null"]}}}},
    "environment": {"type": ["object", "null"]},
    "cells": {"type": "array", "items": {
      "type": "object",
      "required": ["slug", "coordinates", "run", "seed", "options_hash", "status", "error",
        "record", "resumed", "system_kind", "validity", "slo_met", "metrics"],
      "additionalProperties": false,
      "properties": {
        "slug": {"type": "string"},
        "coordinates": {"type": "object", "additionalProperties": {"type": ["number", "string"]}},
        "run": {"type": "integer", "minimum": 1},
        "seed": {"type": "integer", "minimum": 0},
        "options_hash": {"type": "string"},
        "status": {"enum": ["pending", "done", "failed", "error", "unreachable", "interrupted"]},
        "error": {"type": ["string", "null"]},
        "record": {"type": ["string", "null"]},
        "resumed": {"type": "boolean"},
        "system_kind": {"type": ["string", "null"]},
        "validity": {"type": ["object", "null"], "required": ["valid", "reasons"],
          "additionalProperties": false,
                     "properties": {"valid": {"type": "boolean"},
                                    "reasons": {"type": "array", "items": {"type": "string"}}}},
        "slo_met": {"type": ["boolean", "null"]},
        "metrics": {"type": ["object", "null"], "required": ["overloaded"],
          "properties": {"overloaded": {"type": ["boolean", "null"]}},
            "additionalProperties": false}}}},
    "points": {"type": "array", "items": {
      "type": "object", "required": ["coordinates", "runs", "runs_valid", "overloaded",
        "metrics"],
      "additionalProperties": false,
      "properties": {
        "coordinates": {"type": "object", "additionalProperties": {"type": ["number", "string"]}},
        "runs": {"type": "integer", "minimum": 0},
        "runs_valid": {"type": "integer", "minimum": 0},
        "overloaded": {"type": "boolean"},
        "metrics": {"type": "object", "additionalProperties": {
          "type": ["object", "null"], "required": ["value", "lower", "upper"],
            "additionalProperties": false,
          "properties": {"value": {"type": "number"}, "lower": {"type": ["number", "null"]},
                         "upper": {"type": ["number", "null"]}}}}}}},
    "knees": {"type": "array", "items": {
      "type": "object", "required": ["axis", "coordinates", "request_throughput",
        "e2e_mean_ms", "at_the_edge"],
      "additionalProperties": false,
      "properties": {
        "axis": {"type": "string"},
        "coordinates": {"type": "object", "additionalProperties": {"type": ["number", "string"]}},
        "request_throughput": {"type": "number"}, "e2e_mean_ms": {"type": "number"},
        "at_the_edge": {"type": "boolean"}}}}
  },
  "additionalProperties": false
})";

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// A number where it is one: readers then need not parse.
Json axis_value(const SweepAxis& axis, const std::string& value) {
  if (axis.target || value == "inf") return value;
  auto number = core::parse_json(value, axis.name);
  return number.ok() && number.value().is_number() ? std::move(number).value() : Json(value);
}

Json coordinates(const Sweep& sweep, const std::vector<std::string>& values) {
  Json out = Json::object();
  for (size_t i = 0; i < values.size(); ++i) {
    out[sweep.axes[i].name] = axis_value(sweep.axes[i], values[i]);
  }
  return out;
}

Json cell_to_json(const Sweep& sweep, const SweepCell& cell) {
  Json out;
  out["slug"] = cell.slug;
  out["coordinates"] = coordinates(sweep, cell.values);
  out["run"] = cell.run;
  out["seed"] = cell.seed;
  out["options_hash"] = cell.options_hash;
  out["status"] = cell_status_name(cell.status);
  out["error"] = text_or_null(cell.error);
  out["record"] = text_or_null(cell.record_path);
  out["resumed"] = cell.resumed;
  out["system_kind"] = text_or_null(cell.system_kind);
  out["validity"] = nullptr;
  out["slo_met"] = or_null(cell.slo_met);
  out["metrics"] = nullptr;
  if (!cell.has_metrics()) return out;
  out["validity"] = {{"valid", cell.validity.valid}, {"reasons", cell.validity.reasons}};
  const Json all = metrics_to_json(cell.metrics);
  out["metrics"] = Json::object();
  out["metrics"]["overloaded"] = or_null(cell.metrics.overloaded);
  for (const char* key : kCellMetrics) out["metrics"][key] = all.at(key);
  return out;
}

Json point_to_json(const Sweep& sweep, const SweepPoint& point) {
  Json out;
  out["coordinates"] = coordinates(sweep, point.values);
  out["runs"] = point.runs;
  out["runs_valid"] = point.runs_valid;
  out["overloaded"] = point.overloaded;
  out["metrics"] = Json::object();
  for (size_t i = 0; i < point.metrics.size(); ++i) {
    const auto& value = point.metrics[i];
    Json json = nullptr;
    if (value.value) {
      json = {{"value", *value.value},
              {"lower", or_null(value.lower)},
              {"upper", or_null(value.upper)}};
    }
    out["metrics"][sweep_metrics()[i].key] = std::move(json);
  }
  return out;
}

}  // namespace

Json sweep_to_json(const Sweep& sweep) {
  const bool complete = std::all_of(sweep.cells.begin(), sweep.cells.end(), [](const auto& cell) {
    return cell.has_metrics() || cell.status == CellStatus::kError;
  });
  Json out;
  out["schema"] = kSweepSchema;
  out["status"] = complete ? "complete" : "partial";
  out["started_at"] = sweep.started_at;
  out["command"] = sweep.command;
  out["label"] = sweep.label;
  out["model"] = sweep.model;
  out["seed"] = sweep.seed;
  out["num_runs"] = sweep.num_runs;
  out["axes"] = Json::array();
  for (const auto& axis : sweep.axes) {
    Json values = Json::array();
    for (const auto& value : axis.values) values.push_back(axis_value(axis, value));
    out["axes"].push_back({{"name", axis.name}, {"values", std::move(values)}});
  }
  out["targets"] = Json::array();
  for (const auto& target : sweep.targets) {
    out["targets"].push_back({{"name", target.name},
                              {"url", text_or_null(target.url)},
                              {"command", text_or_null(target.command)}});
  }
  out["environment"] = nullptr;
  if (!sweep.environment.commit.empty()) {
    Record carrier;
    carrier.environment = sweep.environment;
    out["environment"] = record_to_json(carrier).at("environment");
  }
  out["cells"] = Json::array();
  for (const auto& cell : sweep.cells) out["cells"].push_back(cell_to_json(sweep, cell));
  const auto points = sweep_points(sweep);
  out["points"] = Json::array();
  for (const auto& point : points) out["points"].push_back(point_to_json(sweep, point));
  out["knees"] = Json::array();
  for (const auto& knee : sweep_knees(sweep, points)) {
    const auto& point = points[knee.point];
    out["knees"].push_back({{"axis", sweep.axes[knee.axis].name},
                            {"coordinates", coordinates(sweep, point.values)},
                            {"request_throughput", *point.metric("request_throughput").value},
                            {"e2e_mean_ms", *point.metric("e2e_mean_ms").value},
                            {"at_the_edge", knee.at_the_edge}});
  }
  return out;
}

Json sweep_json_schema() {
  Json out = core::parse_json(kSchemaText, "the schema of a sweep").value();
  const Json record = record_json_schema();
  auto& metrics = out["properties"]["cells"]["items"]["properties"]["metrics"];
  for (const char* key : kCellMetrics) {
    metrics["required"].push_back(key);
    metrics["properties"][key] = record.at("properties").at("metrics").at("properties").at(key);
  }
  out["$defs"]["latency"] = record.at("$defs").at("latency");
  return out;
}

Result<std::string> sweep_text(const Sweep& sweep) {
  static const Json schema = sweep_json_schema();
  const Json json = sweep_to_json(sweep);
  if (auto valid = check_schema(json, schema, "sweep.json"); !valid) return valid.error();
  auto text = core::write_json(json, 2);
  if (!text) return text;
  return text.value() + "\n";
}

}  // namespace prony::record
