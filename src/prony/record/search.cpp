#include "prony/record/search.hpp"

#include "prony/record/json_schema.hpp"

namespace prony::record {
namespace {

using core::Json;

// The part of a record's metrics that a probe repeats.
constexpr const char* kProbeMetrics[] = {"attempted",
                                         "completed",
                                         "failed",
                                         "duration_s",
                                         "requested_rate",
                                         "sent_rate",
                                         "request_throughput",
                                         "output_throughput",
                                         "steady",
                                         "ttft_ms",
                                         "tpot_ms",
                                         "itl_ms",
                                         "e2e_ms",
                                         "goodput_fraction"};

constexpr std::string_view kSchemaText = R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "prony.search/1",
  "description": "The most that keeps an objective; see docs/sweeps.md. null: not known.",
  "type": "object",
  "required": ["schema", "objective", "unit", "slo", "answer", "precision", "probe_requests",
    "seed", "started_at", "command", "label", "model", "system_kind", "environment", "levels",
      "probes"],
  "additionalProperties": false,
  "properties": {
    "schema": {"const": "prony.search/1"},
    "objective": {"enum": ["max-rate", "max-concurrency"]},
    "unit": {"type": "string"},
    "slo": {"type": "string"},
    "answer": {"type": "object", "required": ["end", "value", "lower", "upper", "limiting",
      "overloaded_above"],
      "additionalProperties": false,
      "properties": {
        "end": {"enum": ["precise", "undecided", "max_passed", "min_failed", "probes_used_up",
          "interrupted", "server_gone"]},
        "value": {"type": ["number", "null"], "minimum": 0},
        "lower": {"type": ["number", "null"], "minimum": 0},
        "upper": {"type": ["number", "null"], "minimum": 0},
        "limiting": {"type": ["string", "null"]},
        "overloaded_above": {"type": "boolean"}}},
    "precision": {"type": "number", "minimum": 0},
    "probe_requests": {"type": "integer", "minimum": 1},
    "seed": {"type": "integer", "minimum": 0},
    "started_at": {"type": "string"},
    "command": {"type": "array", "items": {"type": "string"}},
    "label": {"type": "string"},
    "model": {"type": "string"},
    "system_kind": {"type": ["string", "null"]},
    "environment": {"type": ["object", "null"]},
    "levels": {"type": "array", "items": {
      "type": "object", "required": ["level", "verdict", "requests", "overloaded", "terms"],
        "additionalProperties": false,
      "properties": {
        "level": {"type": "number", "minimum": 0},
        "verdict": {"enum": ["pass", "fail", "undecided"]},
        "requests": {"type": "integer", "minimum": 0},
        "overloaded": {"type": "boolean"},
        "terms": {"type": "array", "items": {
          "type": "object", "required": ["term", "allowed", "n", "bad", "effective_n",
            "estimate", "lower", "upper", "verdict"],
          "additionalProperties": false,
          "properties": {
            "term": {"type": "string"}, "allowed": {"type": "number"},
            "n": {"type": "integer", "minimum": 0}, "bad": {"type": "integer", "minimum": 0},
            "effective_n": {"type": "number", "minimum": 0},
            "estimate": {"type": ["number", "null"]}, "lower": {"type": ["number", "null"]},
            "upper": {"type": ["number", "null"]},
            "verdict": {"enum": ["pass", "fail", "undecided"]}}}}}}},
    "probes": {"type": "array", "items": {
      "type": "object", "required": ["level", "part", "requests", "seed", "record", "judged",
        "validity", "metrics"],
      "additionalProperties": false,
      "properties": {
        "level": {"type": "number", "minimum": 0},
        "part": {"type": "integer", "minimum": 1},
        "requests": {"type": "integer", "minimum": 1},
        "seed": {"type": "integer", "minimum": 0},
        "record": {"type": ["string", "null"]},
        "judged": {"type": "boolean"},
        "validity": {"type": "object", "required": ["valid", "reasons"],
          "additionalProperties": false,
                     "properties": {"valid": {"type": "boolean"},
                                    "reasons": {"type": "array", "items": {"type": "string"}}}},
        "metrics": {"type": "object", "required": ["overloaded"],
          "properties": {"overloaded": {"type": ["boolean", "null"]}},
            "additionalProperties": false}}}}
  }
})";

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json level_to_json(const SearchLevel& level) {
  Json out;
  out["level"] = level.level;
  out["verdict"] = level.verdict;
  out["requests"] = level.requests;
  out["overloaded"] = level.overloaded;
  out["terms"] = Json::array();
  for (const auto& term : level.terms) {
    out["terms"].push_back({{"term", term.text},
                            {"allowed", term.allowed},
                            {"n", term.n},
                            {"bad", term.bad},
                            {"effective_n", term.effective_n},
                            {"estimate", or_null(term.estimate)},
                            {"lower", or_null(term.lower)},
                            {"upper", or_null(term.upper)},
                            {"verdict", term.verdict}});
  }
  return out;
}

Json probe_to_json(const SearchProbe& probe) {
  Json out;
  out["level"] = probe.level;
  out["part"] = probe.part;
  out["requests"] = probe.requests;
  out["seed"] = probe.seed;
  out["record"] = text_or_null(probe.record_path);
  out["judged"] = probe.judged;
  out["validity"] = {{"valid", probe.validity.valid}, {"reasons", probe.validity.reasons}};
  const Json all = metrics_to_json(probe.metrics);
  out["metrics"] = Json::object();
  out["metrics"]["overloaded"] = nullptr;
  if (probe.metrics.overloaded) out["metrics"]["overloaded"] = *probe.metrics.overloaded;
  for (const char* key : kProbeMetrics) out["metrics"][key] = all.at(key);
  return out;
}

}  // namespace

Json search_to_json(const Search& search) {
  Json out;
  out["schema"] = kSearchSchema;
  out["objective"] = search.objective;
  out["unit"] = search.unit;
  out["slo"] = search.slo;
  out["answer"] = {{"end", search.end},
                   {"value", or_null(search.value)},
                   {"lower", or_null(search.lower)},
                   {"upper", or_null(search.upper)},
                   {"limiting", text_or_null(search.limiting)},
                   {"overloaded_above", search.overloaded_above}};
  out["precision"] = search.precision;
  out["probe_requests"] = search.probe_requests;
  out["seed"] = search.seed;
  out["started_at"] = search.started_at;
  out["command"] = search.command;
  out["label"] = search.label;
  out["model"] = search.model;
  out["system_kind"] = text_or_null(search.system_kind);
  out["environment"] = nullptr;
  if (!search.environment.commit.empty()) {
    Record carrier;
    carrier.environment = search.environment;
    out["environment"] = record_to_json(carrier).at("environment");
  }
  out["levels"] = Json::array();
  for (const auto& level : search.levels) out["levels"].push_back(level_to_json(level));
  out["probes"] = Json::array();
  for (const auto& probe : search.probes) out["probes"].push_back(probe_to_json(probe));
  return out;
}

Json search_json_schema() {
  Json out = core::parse_json(kSchemaText, "the schema of a search").value();
  const Json record = record_json_schema();
  auto& metrics = out["properties"]["probes"]["items"]["properties"]["metrics"];
  for (const char* key : kProbeMetrics) {
    metrics["required"].push_back(key);
    metrics["properties"][key] = record.at("properties").at("metrics").at("properties").at(key);
  }
  out["$defs"]["latency"] = record.at("$defs").at("latency");
  return out;
}

Result<std::string> search_text(const Search& search) {
  static const Json schema = search_json_schema();
  const Json json = search_to_json(search);
  if (auto valid = check_schema(json, schema, "search.json"); !valid) return valid.error();
  auto text = core::write_json(json, 2);
  if (!text) return text;
  return text.value() + "\n";
}

}  // namespace prony::record
