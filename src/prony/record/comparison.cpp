#include "prony/record/comparison.hpp"

#include <algorithm>

#include "prony/record/json_schema.hpp"

namespace prony::record {
namespace {

using core::Json;

constexpr std::string_view kSchemaText = R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "prony.compare/1",
  "description": "Changes between runs, with verdicts; see docs/compare.md. null: not known.",
  "type": "object",
  "required": ["schema", "confidence", "seed", "replicates", "allow_incomparable", "broken",
    "refused", "sides", "comparisons"],
  "additionalProperties": false,
  "properties": {
    "schema": {"const": "prony.compare/1"},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    "seed": {"type": "integer", "minimum": 0},
    "replicates": {"type": "integer", "minimum": 1},
    "allow_incomparable": {"type": "boolean"},
    "broken": {"type": "boolean", "description": "a rule of --fail-if is broken"},
    "refused": {"type": "boolean", "description": "sides that are not comparable, without leave"},
    "sides": {"type": "array", "minItems": 2, "items": {
      "type": "object", "required": ["name", "runs"], "additionalProperties": false,
      "properties": {
        "name": {"type": "string"},
        "runs": {"type": "array", "minItems": 1, "items": {
          "type": "object",
          "required": ["path", "label", "started_at", "source", "system_kind", "rows", "valid",
            "interrupted", "reasons"],
          "additionalProperties": false,
          "properties": {
            "path": {"type": "string"}, "label": {"type": "string"},
            "started_at": {"type": ["string", "null"]},
            "source": {"enum": ["measured", "predicted", "simulated", null]},
            "system_kind": {"enum": ["endpoint", "emulated", "mock", "deployment", null]},
            "rows": {"type": ["integer", "null"], "minimum": 0},
            "valid": {"type": "boolean"}, "interrupted": {"type": "boolean"},
            "reasons": {"type": "array", "items": {"type": "string"}}}}}}}},
    "comparisons": {"type": "array", "minItems": 1, "items": {
      "type": "object",
      "required": ["baseline", "candidate", "method", "comparable", "reasons", "notes",
        "differences", "metrics", "distributions", "rules"],
      "additionalProperties": false,
      "properties": {
        "baseline": {"type": "string"}, "candidate": {"type": "string"},
        "method": {"enum": ["paired", "unpaired", "runs", "paired runs", "figures"]},
        "comparable": {"type": "boolean"},
        "reasons": {"type": "array", "items": {"type": "string"}},
        "notes": {"type": "array", "items": {"type": "string"}},
        "differences": {"type": "array", "items": {
          "type": "object",
          "required": ["section", "field", "baseline", "candidate", "incomparable"],
          "additionalProperties": false,
          "properties": {
            "section": {"type": "string"}, "field": {"type": "string"},
            "baseline": {"type": "string"}, "candidate": {"type": "string"},
            "incomparable": {"type": "boolean"}}}},
        "metrics": {"type": "array", "items": {
          "type": "object",
          "required": ["key", "label", "unit", "higher_is_better", "baseline", "candidate",
            "difference", "relative", "p", "p_holm", "method", "samples", "verdict"],
          "additionalProperties": false,
          "properties": {
            "key": {"type": "string"}, "label": {"type": "string"}, "unit": {"type": "string"},
            "higher_is_better": {"type": "boolean"},
            "baseline": {"type": ["number", "null"]}, "candidate": {"type": ["number", "null"]},
            "difference": {"$ref": "#/$defs/change"}, "relative": {"$ref": "#/$defs/change"},
            "p": {"$ref": "#/$defs/p"}, "p_holm": {"$ref": "#/$defs/p"},
            "method": {"type": "string"}, "samples": {"type": "integer", "minimum": 0},
            "verdict": {"$ref": "#/$defs/verdict"}}}},
        "distributions": {"type": "array", "items": {
          "type": "object",
          "required": ["key", "label", "test", "n_baseline", "n_candidate", "shift_ms",
            "cliffs_delta", "p", "p_holm", "verdict"],
          "additionalProperties": false,
          "properties": {
            "key": {"type": "string"}, "label": {"type": "string"},
            "test": {"enum": ["wilcoxon", "mann-whitney"]},
            "n_baseline": {"type": "integer", "minimum": 0},
            "n_candidate": {"type": "integer", "minimum": 0},
            "shift_ms": {"$ref": "#/$defs/change"}, "cliffs_delta": {"$ref": "#/$defs/change"},
            "p": {"$ref": "#/$defs/p"}, "p_holm": {"$ref": "#/$defs/p"},
            "verdict": {"$ref": "#/$defs/verdict"}}}},
        "rules": {"type": "array", "items": {
          "type": "object",
          "required": ["text", "unit", "change", "confidence", "estimate_fails", "state"],
          "additionalProperties": false,
          "properties": {
            "text": {"type": "string"}, "unit": {"enum": ["%", "ms", "pp"]},
            "change": {"$ref": "#/$defs/change"},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "estimate_fails": {"type": "boolean"},
            "state": {"enum": ["kept", "broken", "undecided"]}}}}}}}
  },
  "$defs": {
    "p": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
    "verdict": {"enum": ["improved", "regressed", "no difference shown", "cannot tell"]},
    "change": {"type": ["object", "null"], "required": ["value", "lower", "upper"],
      "additionalProperties": false,
      "properties": {"value": {"type": "number"}, "lower": {"type": ["number", "null"]},
                     "upper": {"type": ["number", "null"]}}}
  }
})";

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json change_to_json(const Change& change) {
  if (!change.value) return nullptr;
  Json out = {{"value", *change.value}, {"lower", nullptr}, {"upper", nullptr}};
  if (change.interval) {
    out["lower"] = change.interval->lower;
    out["upper"] = change.interval->upper;
  }
  return out;
}

Json run_to_json(const ComparedRun& run) {
  return {{"path", run.path},
          {"label", run.label},
          {"started_at", text_or_null(run.started_at)},
          {"source", text_or_null(run.source)},
          {"system_kind", text_or_null(run.system_kind)},
          {"rows", or_null(run.rows)},
          {"valid", run.valid},
          {"interrupted", run.interrupted},
          {"reasons", run.reasons}};
}

Json metric_to_json(const ComparedMetric& metric) {
  return {{"key", metric.key},
          {"label", metric.label},
          {"unit", metric.unit},
          {"higher_is_better", metric.higher_is_better},
          {"baseline", or_null(metric.baseline)},
          {"candidate", or_null(metric.candidate)},
          {"difference", change_to_json(metric.difference)},
          {"relative", change_to_json(metric.relative)},
          {"p", or_null(metric.p)},
          {"p_holm", or_null(metric.p_holm)},
          {"method", metric.method},
          {"samples", metric.samples},
          {"verdict", compare_verdict_name(metric.verdict)}};
}

Json distribution_to_json(const ComparedDistribution& distribution) {
  return {{"key", distribution.key},
          {"label", distribution.label},
          {"test", distribution.test},
          {"n_baseline", distribution.n_baseline},
          {"n_candidate", distribution.n_candidate},
          {"shift_ms", change_to_json(distribution.shift_ms)},
          {"cliffs_delta", change_to_json(distribution.cliffs_delta)},
          {"p", or_null(distribution.p)},
          {"p_holm", or_null(distribution.p_holm)},
          {"verdict", compare_verdict_name(distribution.verdict)}};
}

Json rule_to_json(const ComparedRule& rule) {
  return {{"text", rule.text},
          {"unit", rule.unit},
          {"change", change_to_json(rule.change)},
          {"confidence", rule.confidence},
          {"estimate_fails", rule.estimate_fails},
          {"state", rule_state_name(rule.state)}};
}

template <class List, class ToJson>
Json array_of(const List& list, const ToJson& to_json) {
  Json out = Json::array();
  for (const auto& one : list) out.push_back(to_json(one));
  return out;
}

Json side_comparison_to_json(const Comparison& whole, const SideComparison& one) {
  Json out;
  out["baseline"] = whole.sides.front().name;
  out["candidate"] = whole.sides[one.candidate].name;
  out["method"] = one.method;
  out["comparable"] = one.comparable;
  out["reasons"] = one.reasons;
  out["notes"] = one.notes;
  out["differences"] = array_of(one.differences, [](const CompareDifference& difference) -> Json {
    return {{"section", difference.section},
            {"field", difference.field},
            {"baseline", difference.baseline},
            {"candidate", difference.candidate},
            {"incomparable", difference.incomparable}};
  });
  out["metrics"] = array_of(one.metrics, metric_to_json);
  out["distributions"] = array_of(one.distributions, distribution_to_json);
  out["rules"] = array_of(one.rules, rule_to_json);
  return out;
}

}  // namespace

const char* compare_verdict_name(CompareVerdict verdict) {
  switch (verdict) {
    case CompareVerdict::kImproved:
      return "improved";
    case CompareVerdict::kRegressed:
      return "regressed";
    case CompareVerdict::kNoDifference:
      return "no difference shown";
    case CompareVerdict::kCannotTell:
      break;
  }
  return "cannot tell";
}

const char* rule_state_name(RuleState state) {
  switch (state) {
    case RuleState::kKept:
      return "kept";
    case RuleState::kBroken:
      return "broken";
    case RuleState::kUndecided:
      break;
  }
  return "undecided";
}

bool Comparison::broken() const {
  return std::ranges::any_of(comparisons, [](const SideComparison& one) {
    return std::ranges::any_of(
        one.rules, [](const ComparedRule& rule) { return rule.state == RuleState::kBroken; });
  });
}

bool Comparison::refused() const {
  return !allow_incomparable && std::ranges::any_of(comparisons, [](const SideComparison& one) {
    return !one.comparable;
  });
}

int64_t Comparison::count(CompareVerdict verdict) const {
  int64_t out = 0;
  for (const auto& one : comparisons) {
    out += std::ranges::count(one.metrics, verdict, &ComparedMetric::verdict);
    out += std::ranges::count(one.distributions, verdict, &ComparedDistribution::verdict);
  }
  return out;
}

Json comparison_to_json(const Comparison& comparison) {
  Json out;
  out["schema"] = kCompareSchema;
  out["confidence"] = comparison.confidence;
  out["seed"] = comparison.seed;
  out["replicates"] = comparison.replicates;
  out["allow_incomparable"] = comparison.allow_incomparable;
  out["broken"] = comparison.broken();
  out["refused"] = comparison.refused();
  out["sides"] = array_of(comparison.sides, [](const ComparedSide& side) -> Json {
    return {{"name", side.name}, {"runs", array_of(side.runs, run_to_json)}};
  });
  out["comparisons"] = array_of(comparison.comparisons, [&](const SideComparison& one) {
    return side_comparison_to_json(comparison, one);
  });
  return out;
}

Json comparison_json_schema() {
  return core::parse_json(kSchemaText, "the schema of a comparison").value();
}

Result<std::string> comparison_text(const Comparison& comparison) {
  static const Json schema = comparison_json_schema();
  const Json json = comparison_to_json(comparison);
  if (auto valid = check_schema(json, schema, "compare.json"); !valid) return valid.error();
  auto text = core::write_json(json, 2);
  if (!text) return text;
  return text.value() + "\n";
}

}  // namespace prony::record
