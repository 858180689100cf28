// Writer, reader and schema of a record: three visitors of the field lists in fields.hpp.
#include <fmt/format.h>

#include <array>

#include "prony/record/fields.hpp"
#include "prony/record/json_schema.hpp"
#include "prony/record/record.hpp"
#include "prony/record/telemetry_schema.hpp"

namespace prony::record {
namespace {

using core::Json;

constexpr std::array kSourceNames = {"measured", "predicted", "simulated"};
constexpr std::array kKindNames = {"endpoint", "emulated", "mock", "deployment"};

// "http://user:secret@host/x" -> "http://host/x": a record is made to be shown.
std::string without_credentials(const std::string& url) {
  const auto scheme = url.find("://");
  if (scheme == std::string::npos) return url;
  const auto begin = scheme + 3;
  const auto at = url.rfind('@', url.find_first_of("/?#", begin));
  if (at == std::string::npos || at < begin) return url;
  return url.substr(0, begin) + url.substr(at + 1);
}

// Calls visit(visitor) with the field list of the struct type T.
template <class T>
struct Lists;
#define PRONY_FIELD_LIST(Type, function)  \
  template <>                             \
  struct Lists<Type> {                    \
    template <class M, class Visitor>     \
    static void visit(M& m, Visitor& v) { \
      function(m, v);                     \
    }                                     \
  }
PRONY_FIELD_LIST(LatencyStats, visit_latency_fields);
PRONY_FIELD_LIST(LatencyStats::Ci95, visit_ci95_fields);
PRONY_FIELD_LIST(TokenTally, visit_tally_fields);
PRONY_FIELD_LIST(RateCi95, visit_rate_ci95_fields);
PRONY_FIELD_LIST(LittlesLaw, visit_little_fields);
PRONY_FIELD_LIST(RunWarmUp, visit_warm_up_fields);
PRONY_FIELD_LIST(ErrorSlice, visit_error_slice_fields);
PRONY_FIELD_LIST(TurnStats, visit_turn_fields);
PRONY_FIELD_LIST(StageStats, visit_stage_fields);
PRONY_FIELD_LIST(FailureRun, visit_failure_run_fields);
PRONY_FIELD_LIST(Metrics, visit_metrics_fields);
PRONY_FIELD_LIST(System, visit_system_fields);
PRONY_FIELD_LIST(Workload, visit_workload_fields);
PRONY_FIELD_LIST(Environment, visit_environment_fields);
PRONY_FIELD_LIST(Validity, visit_validity_fields);
PRONY_FIELD_LIST(Run, visit_run_fields);
PRONY_FIELD_LIST(Record, visit_record_fields);
#undef PRONY_FIELD_LIST

template <class T>
concept Listed = requires {
  sizeof(Lists<T>);
};

// ---- writing ----

template <Listed T>
Json encode(const T& value);

Json encode(const std::string& value) {
  return value;
}
Json encode(bool value) {
  return value;
}
Json encode(int64_t value) {
  return value;
}
Json encode(uint64_t value) {
  return value;
}
Json encode(double value) {
  return value;
}
Json encode(const Json& value) {
  return value;
}
Json encode(Source value) {
  return source_name(value);
}
Json encode(SystemKind value) {
  return system_kind_name(value);
}
Json encode(const stats::Interval& value) {
  return Json::array({value.lower, value.upper});
}
Json encode(const std::vector<std::string>& value) {
  return Json(value);
}
Json encode(const std::map<std::string, int64_t>& value) {
  Json out = Json::object();
  for (const auto& [key, count] : value) out[key] = count;
  return out;
}
template <Listed T>
Json encode(const std::vector<T>& value) {
  Json out = Json::array();
  for (const auto& item : value) out.push_back(encode(item));
  return out;
}
template <class T>
Json encode(const std::optional<T>& value) {
  return value ? encode(*value) : Json(nullptr);
}

struct Writer {
  Json json = Json::object();
  template <class T>
  void field(const char* key, const T& value, const Rule& rule) {
    Json encoded = encode(value);
    if (rule.optional && encoded.is_null()) return;
    json[key] = std::move(encoded);
  }
};

template <Listed T>
Json encode(const T& value) {
  if constexpr (std::is_same_v<T, LatencyStats>) {
    if (!value.known()) return nullptr;
  }
  Writer writer;
  Lists<T>::visit(value, writer);
  return std::move(writer.json);
}

// ---- reading; the schema has been checked ----

template <Listed T>
void decode(const Json& json, T& out);

void decode(const Json& json, std::string& out) {
  out = json.get<std::string>();
}
void decode(const Json& json, bool& out) {
  out = json.get<bool>();
}
void decode(const Json& json, int64_t& out) {
  out = json.get<int64_t>();
}
void decode(const Json& json, uint64_t& out) {
  out = json.get<uint64_t>();
}
void decode(const Json& json, double& out) {
  out = json.get<double>();
}
void decode(const Json& json, Json& out) {
  out = json;
}
template <class Enum, size_t N>
void decode_name(const Json& json, const std::array<const char*, N>& names, Enum& out) {
  for (size_t i = 0; i < N; ++i) {
    if (json == names[i]) out = static_cast<Enum>(i);
  }
}
void decode(const Json& json, Source& out) {
  decode_name(json, kSourceNames, out);
}
void decode(const Json& json, SystemKind& out) {
  decode_name(json, kKindNames, out);
}
void decode(const Json& json, stats::Interval& out) {
  out = {json.at(0).get<double>(), json.at(1).get<double>()};
}
void decode(const Json& json, std::vector<std::string>& out) {
  out = json.get<std::vector<std::string>>();
}
void decode(const Json& json, std::map<std::string, int64_t>& out) {
  out.clear();
  for (const auto& [key, count] : json.items()) out[key] = count.get<int64_t>();
}
template <Listed T>
void decode(const Json& json, std::vector<T>& out) {
  out.clear();
  for (const auto& item : json) decode(item, out.emplace_back());
}
template <class T>
void decode(const Json& json, std::optional<T>& out) {
  out.reset();
  if (json.is_null()) return;
  T value{};
  decode(json, value);
  out = value;
}

struct Reader {
  const Json& json;
  template <class T>
  void field(const char* key, T& out, const Rule&) {
    if (json.contains(key)) decode(json.at(key), out);
  }
};

template <Listed T>
void decode(const Json& json, T& out) {
  out = T{};
  if (json.is_null()) return;
  Reader reader{json};
  Lists<T>::visit(out, reader);
}

// ---- the schema ----

struct SchemaWriter;
template <Listed T>
Json object_schema();

Json number_schema(const char* type, const Rule& rule) {
  Json out;
  out["type"] = type;
  // Bounds that are whole are written as such: "minimum": 0.
  const auto bound = [&](const char* keyword, const std::optional<double>& value) {
    if (value) out[keyword] = static_cast<int64_t>(*value);
  };
  bound("minimum", rule.minimum);
  bound("maximum", rule.maximum);
  return out;
}

template <class T>
struct Tag {};

Json shape(Tag<std::string>, const Rule&) {
  return {{"type", "string"}};
}
Json shape(Tag<bool>, const Rule&) {
  return {{"type", "boolean"}};
}
Json shape(Tag<int64_t>, const Rule& rule) {
  return number_schema("integer", rule);
}
Json shape(Tag<uint64_t>, const Rule& rule) {
  return number_schema("integer", rule);
}
Json shape(Tag<double>, const Rule& rule) {
  return number_schema("number", rule);
}
Json shape(Tag<Json>, const Rule& rule) {
  return {{"type", rule.array ? "array" : "object"}};
}
Json shape(Tag<Source>, const Rule&) {
  return {{"enum", Json(kSourceNames)}};
}
Json shape(Tag<SystemKind>, const Rule&) {
  return {{"enum", Json(kKindNames)}};
}
Json shape(Tag<stats::Interval>, const Rule&) {
  Json out;
  out["type"] = "array";
  out["items"] = {{"type", "number"}};
  out["minItems"] = 2;
  out["maxItems"] = 2;
  return out;
}
Json shape(Tag<std::vector<std::string>>, const Rule&) {
  Json out;
  out["type"] = "array";
  out["items"] = {{"type", "string"}};
  return out;
}
Json shape(Tag<std::map<std::string, int64_t>>, const Rule& rule) {
  Json out;
  out["type"] = "object";
  out["additionalProperties"] = number_schema("integer", rule);
  return out;
}
Json shape(Tag<LatencyStats>, const Rule&) {
  return {{"$ref", "#/$defs/latency"}};
}
Json shape(Tag<TokenTally>, const Rule&) {
  return {{"$ref", "#/$defs/tokens"}};
}
template <class T>
Json shape(Tag<std::optional<T>>, const Rule& rule) {
  Json out = shape(Tag<T>{}, rule);
  out["type"] = Json::array({out["type"], "null"});
  return out;
}
template <Listed T>
Json shape(Tag<std::vector<T>>, const Rule&) {
  Json out;
  out["type"] = "array";
  out["items"] = object_schema<T>();
  return out;
}
template <Listed T>
Json shape(Tag<T>, const Rule&) {
  return object_schema<T>();
}

struct SchemaWriter {
  Json properties = Json::object();
  Json required = Json::array();
  template <class T>
  void field(const char* key, const T&, const Rule& rule) {
    properties[key] = shape(Tag<T>{}, rule);
    if (!rule.optional && !rule.newer) required.push_back(key);
  }
};

template <Listed T>
Json object_schema() {
  SchemaWriter writer;
  const T value{};
  Lists<T>::visit(value, writer);
  Json out;
  out["type"] = "object";
  out["required"] = std::move(writer.required);
  out["properties"] = std::move(writer.properties);
  out["additionalProperties"] = false;
  return out;
}

}  // namespace

const char* source_name(Source source) {
  return kSourceNames[static_cast<size_t>(source)];
}
const char* system_kind_name(SystemKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

Json metrics_to_json(const Metrics& metrics) {
  return encode(metrics);
}
Json latency_to_json(const LatencyStats& stats) {
  return encode(stats);
}

Result<Metrics> metrics_from_json(const Json& json) {
  static const Json schema = [] {
    Json out = shape(Tag<Metrics>{}, kAny);
    out["$defs"] = record_json_schema().at("$defs");
    return out;
  }();
  if (auto checked = check_schema(json, schema, "metrics"); !checked) return checked.error();
  Metrics metrics;
  decode(json, metrics);
  return metrics;
}

Json record_to_json(const Record& record) {
  Json out;
  out["schema"] = kRecordSchema;
  Json body = encode(record);
  for (auto& [key, value] : body.items()) out[key] = std::move(value);
  out["system"]["endpoint"] = without_credentials(record.system.endpoint);
  return out;
}

Result<Record> record_from_json(const Json& json, std::string_view name) {
  if (auto valid = validate_record(json, name); !valid) return valid.error();
  Record record;
  decode(json, record);
  return record;
}

Json record_json_schema() {
  Json body = object_schema<Record>();
  Json properties = {{"schema", {{"const", kRecordSchema}}}};
  for (auto& [key, value] : body["properties"].items()) properties[key] = std::move(value);
  properties["telemetry"] = telemetry_schema();
  Json required = Json::array({"schema"});
  for (auto& key : body["required"]) required.push_back(key);
  Json latency = object_schema<LatencyStats>();
  latency["type"] = Json::array({"object", "null"});

  Json out;
  out["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  out["title"] = kRecordSchema;
  out["description"] =
      "What a run was and what came out; one document for measured, predicted and simulated runs. "
      "Definitions of the metrics: docs/metrics.md. null means: no model, or too few samples.";
  out["type"] = "object";
  out["required"] = std::move(required);
  out["properties"] = std::move(properties);
  out["additionalProperties"] = false;
  out["$defs"]["latency"] = std::move(latency);
  out["$defs"]["tokens"] = object_schema<TokenTally>();
  return out;
}

}  // namespace prony::record
