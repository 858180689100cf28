// One row as JSON: writer, reader and published schema walk the same list of fields.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "prony/record/json_schema.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/record/rows_file.hpp"

namespace prony::record {
namespace {

using core::Json;
using core::Nanos;

// The contract's fields, each once, in order; the keys after them make the row complete, so that
// every metric but the gaps can be computed again from a file without events.
template <class Row, class Visitor>
void visit_row_fields(Row& row, Visitor& v) {
  v.field("index", row.index);
  v.field("id", row.id);
  v.field("status", row.status);
  v.field("http_status", row.http_status);
  v.nullable_text("error", row.error);
  v.field("retries", row.retries);
  v.field("input_tokens_asked", row.input_tokens_asked);
  v.field("prompt_tokens", row.prompt_tokens);
  v.field("output_tokens_asked", row.output_tokens_asked);
  v.field("output_tokens", row.output_tokens);
  v.field("token_source", row.token_source);
  v.nullable_text("finish_reason", row.finish_reason);
  v.field("t_intended_ns", row.t_intended_ns);
  v.field("t_connect_ns", row.t_connect_ns);
  v.field("t_send_ns", row.t_send_ns);
  v.field("t_sent_ns", row.t_sent_ns);
  v.field("t_headers_ns", row.t_headers_ns);
  v.field("t_first_event_ns", row.t_first_event_ns);
  v.field("t_first_token_ns", row.t_first_token_ns);
  v.field("t_last_token_ns", row.t_last_token_ns);
  v.field("t_done_ns", row.t_done_ns);
  v.field("t_close_ns", row.t_close_ns);
  v.derived("ttft_ms", ttft_ms);
  v.derived("tpot_ms", tpot_ms);
  v.derived("e2e_ms", e2e_ms);
  v.field("t_connect_begin_ns", row.t_connect_begin_ns);
  v.field("t_first_output_ns", row.t_first_output_ns);
  v.field("first_event_tokens", row.first_event_tokens);
  v.field("tokens_per_event_exact", row.tokens_per_event_exact);
  v.field("merged_events", row.merged_events);
  v.field("read_lag_max_ns", row.read_lag_max_ns);
  // Younger than the first files: always written, not missed on reading.
  v.added("issue_lag_ns", row.issue_lag_ns);
  v.if_any("session", row.session);  // conversations alone have them
  v.if_any("turn", row.turn);
  v.if_any("stage", row.stage);  // loads in stages alone have them
}

struct RowWriter {
  const RequestRow& row;
  Json json = Json::object();

  void field(const char* key, Status status) { json[key] = status_name(status); }
  void field(const char* key, TokenSource source) { json[key] = token_source_name(source); }
  template <class T>
  void field(const char* key, const T& value) {
    json[key] = value;
  }
  template <class T>
  void field(const char* key, const std::optional<T>& value) {
    json[key] = value ? Json(*value) : Json(nullptr);
  }
  template <class T>
  void added(const char* key, const T& value) {
    field(key, value);
  }
  void nullable_text(const char* key, const std::string& text) {
    json[key] = text.empty() ? Json(nullptr) : Json(text);
  }
  void derived(const char* key, std::optional<double> (*function)(const RequestRow&)) {
    field(key, function(row));
  }
  template <class T>
  void if_any(const char* key, const std::optional<T>& value) {
    if (value) json[key] = *value;
  }
};

// The names of an enumeration, from its first enumerator to `last`.
template <class Enum, class Name>
std::vector<std::string> names_of(Enum last, Name name) {
  std::vector<std::string> out;
  for (int i = 0; i <= static_cast<int>(last); ++i) out.emplace_back(name(static_cast<Enum>(i)));
  return out;
}
std::vector<std::string> names_of(Status) {
  return names_of(Status::kUnfinished, status_name);
}
std::vector<std::string> names_of(TokenSource) {
  return names_of(TokenSource::kEventCount, token_source_name);
}

template <class T>
struct SchemaType;
template <>
struct SchemaType<std::string> {
  static constexpr const char* kName = "string";
};
template <>
struct SchemaType<bool> {
  static constexpr const char* kName = "boolean";
};
template <>
struct SchemaType<int32_t> {
  static constexpr const char* kName = "integer";
};
template <>
struct SchemaType<int64_t> {
  static constexpr const char* kName = "integer";
};

struct RowSchema {
  Json properties = Json::object();
  Json required = Json::array();

  void add(const char* key, Json shape) {
    properties[key] = std::move(shape);
    required.push_back(key);
  }
  void field(const char* key, Status status) { add(key, {{"enum", names_of(status)}}); }
  void field(const char* key, TokenSource source) { add(key, {{"enum", names_of(source)}}); }
  template <class T>
  void field(const char* key, const T&) {
    add(key, {{"type", SchemaType<T>::kName}});
  }
  template <class T>
  void field(const char* key, const std::optional<T>&) {
    add(key, {{"type", {SchemaType<T>::kName, "null"}}});
  }
  template <class T>
  void added(const char* key, const T& value) {
    field(key, value);
    required.erase(required.size() - 1);
  }
  void nullable_text(const char* key, const std::string&) {
    add(key, {{"type", {"string", "null"}}});
  }
  void derived(const char* key, std::optional<double> (*)(const RequestRow&)) {
    add(key, {{"type", {"number", "null"}}});
  }
  template <class T>
  void if_any(const char* key, const std::optional<T>&) {
    properties[key] = {{"type", SchemaType<T>::kName}};
  }
};

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

class RowReader {
 public:
  RowReader(const Json& json, std::string_view where) : json_(json), where_(where) {}

  void field(const char* key, Status& out) { read_name(key, out, parse_status); }
  void field(const char* key, TokenSource& out) { read_name(key, out, parse_token_source); }
  void field(const char* key, std::string& out) {
    if (const auto* json = text_at(key)) out = json->get<std::string>();
  }
  void field(const char* key, bool& out) {
    const auto* json = at(key);
    if (json == nullptr) return;
    if (!json->is_boolean()) return fail(key, *json, "true or false");
    out = json->get<bool>();
  }
  template <class Integer>
  void field(const char* key, Integer& out) {
    if (const auto* json = at(key)) read_integer(key, *json, out);
  }
  template <class Integer>
  void field(const char* key, std::optional<Integer>& out) {
    const auto* json = at(key);
    if (json == nullptr || json->is_null()) return;
    out.emplace();
    read_integer(key, *json, *out);
  }
  template <class T>
  void added(const char* key, T& out) {
    if (json_.contains(key)) field(key, out);
  }
  void nullable_text(const char* key, std::string& out) {
    const auto* json = at(key);
    if (json == nullptr || json->is_null()) return;
    if (!json->is_string()) return fail(key, *json, "a string or null");
    out = json->get<std::string>();
  }
  void derived(const char* key, std::optional<double> (*)(const RequestRow&)) {
    const auto* json = at(key);
    if (json != nullptr && !json->is_number() && !json->is_null())
      fail(key, *json, "a number or null");
  }

  template <class Integer>
  void if_any(const char* key, std::optional<Integer>& out) {
    if (!json_.contains(key)) return;
    read_integer(key, *at(key), out.emplace());
  }

  void events(RequestRow& row) {
    if (!json_.contains("events")) return;
    const auto* events = at("events");
    if (!events->is_array()) return fail("events", *events, "an array");
    row.events.reserve(events->size());
    for (size_t i = 0; i < events->size(); ++i) {
      const auto& event = (*events)[i];
      const std::string key = fmt::format("events/{}", i);
      if (!event.is_array() || event.size() != 3) {
        return fail(key, event, "[t_kernel_ns, t_user_ns, tokens]");
      }
      auto& out = row.events.emplace_back();
      read_integer(key + "/0", event[0], out.t_kernel_ns);
      read_integer(key + "/1", event[1], out.t_user_ns);
      read_integer(key + "/2", event[2], out.tokens);
    }
  }
  void optional_text(const char* key, std::string& out) {
    if (json_.contains(key)) field(key, out);
  }

  Result<void> finish() {
    if (!error_ && seen_ < json_.size()) {
      for (const auto& [key, value] : json_.items()) {
        if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
          error_ = invalid_argument(fmt::format("{}: /{}: unknown key", where_, one_line(key)));
          break;
        }
      }
    }
    if (error_) return *error_;
    return {};
  }

 private:
  void fail(std::string_view key, const Json& found, std::string_view expected) {
    if (error_) return;
    error_ = invalid_argument(
        fmt::format("{}: /{}: found {}, expected {}", where_, key, describe(found), expected));
  }
  const Json* at(const char* key) {
    known_.emplace_back(key);
    const auto it = json_.find(key);
    if (it == json_.end()) {
      if (!error_) error_ = invalid_argument(fmt::format("{}: /{}: missing", where_, key));
      return nullptr;
    }
    ++seen_;
    return &*it;
  }
  const Json* text_at(const char* key) {
    const auto* json = at(key);
    if (json == nullptr || json->is_string()) return json;
    fail(key, *json, "a string");
    return nullptr;
  }
  template <class Enum, class Parse>
  void read_name(const char* key, Enum& out, Parse parse) {
    const auto* json = text_at(key);
    if (json == nullptr) return;
    const auto value = parse(json->get<std::string>());
    if (!value) return fail(key, *json, "one of " + joined(names_of(out)));
    out = *value;
  }
  template <class Integer>
  void read_integer(std::string_view key, const Json& json, Integer& out) {
    using Limits = std::numeric_limits<Integer>;
    if (!json.is_number_integer()) return fail(key, json, "a whole number");
    // An unsigned value above INT64_MAX would wrap when read as signed.
    const bool huge = json.is_number_unsigned() && json.get<uint64_t>() > uint64_t{INT64_MAX};
    const auto value = json.get<int64_t>();
    if (huge || value < Limits::min() || value > Limits::max()) {
      return fail(key, json,
                  fmt::format("at least {} and at most {}", Limits::min(), Limits::max()));
    }
    out = static_cast<Integer>(value);
  }

  const Json& json_;
  std::string_view where_;
  std::vector<std::string_view> known_;
  size_t seen_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Json row_to_json(const RequestRow& row, const RowFormat& format) {
  RowWriter writer{row};
  visit_row_fields(row, writer);
  if (format.detailed) {
    Json events = Json::array();
    for (const auto& event : row.events) {
      events.push_back(Json::array({event.t_kernel_ns, event.t_user_ns, event.tokens}));
    }
    writer.json["events"] = std::move(events);
  }
  if (format.text) {
    writer.json["text"] = row.text;
    writer.json["reasoning"] = row.reasoning;
    writer.json["tool_calls"] = row.tool_calls;
  }
  return std::move(writer.json);
}

Json row_json_schema() {
  RowSchema schema;
  const RequestRow row;
  visit_row_fields(row, schema);
  Json event;
  event["type"] = "array";
  event["items"] = {{"type", "integer"}};
  event["minItems"] = 3;
  event["maxItems"] = 3;
  schema.properties["events"] = {{"type", "array"}, {"items", std::move(event)}};
  for (const char* key : {"text", "reasoning", "tool_calls"}) {
    schema.properties[key] = {{"type", "string"}};
  }
  Json out;
  out["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  out["title"] = "prony.requests/1";
  out["description"] =
      "One line of requests.jsonl: one request of a run. Stamps (_ns) are CLOCK_MONOTONIC, virtual "
      "time if simulated, null where the event never came. Definitions: docs/metrics.md.";
  out["type"] = "object";
  out["required"] = std::move(schema.required);
  out["properties"] = std::move(schema.properties);
  out["additionalProperties"] = false;
  return out;
}

Result<RequestRow> row_from_json(const Json& json, std::string_view where) {
  if (!json.is_object()) {
    return invalid_argument(fmt::format("{}: found {}, expected an object", where, describe(json)));
  }
  RequestRow row;
  RowReader reader(json, where);
  visit_row_fields(row, reader);
  reader.events(row);
  reader.optional_text("text", row.text);
  reader.optional_text("reasoning", row.reasoning);
  reader.optional_text("tool_calls", row.tool_calls);
  if (auto read = reader.finish(); !read) return read.error();
  if (auto checked = check_row(row, where); !checked) return checked.error();
  return row;
}

Result<void> check_row(const RequestRow& row, std::string_view where) {
  const auto error = [&](std::string_view key, const std::string& reason) {
    return invalid_argument(fmt::format("{}: /{}: {}", where, key, reason));
  };
  const auto negative = [](const std::optional<int32_t>& value) { return value && *value < 0; };
  const std::pair<const char*, std::optional<int32_t>> counts[] = {
      {"http_status", row.http_status},
      {"retries", row.retries},
      {"input_tokens_asked", row.input_tokens_asked},
      {"prompt_tokens", row.prompt_tokens},
      {"output_tokens_asked", row.output_tokens_asked},
      {"output_tokens", row.output_tokens},
      {"first_event_tokens", row.first_event_tokens},
      {"merged_events", row.merged_events}};
  if (row.index < 0) return error("index", fmt::format("found {}, expected at least 0", row.index));
  for (const auto& [key, value] : counts) {
    if (negative(value)) return error(key, fmt::format("found {}, expected at least 0", *value));
  }
  // Pairs in which the second cannot be before the first.
  struct Pair {
    const char *first_key, *second_key;
    std::optional<Nanos> first, second;
  };
  const Pair pairs[] = {
      {"t_connect_begin_ns", "t_connect_ns", row.t_connect_begin_ns, row.t_connect_ns},
      {"t_send_ns", "t_sent_ns", row.t_send_ns, row.t_sent_ns},
      {"t_first_event_ns", "t_first_token_ns", row.t_first_event_ns, row.t_first_token_ns},
      {"t_first_token_ns", "t_first_output_ns", row.t_first_token_ns, row.t_first_output_ns},
      {"t_first_token_ns", "t_last_token_ns", row.t_first_token_ns, row.t_last_token_ns},
      {"t_last_token_ns", "t_done_ns", row.t_last_token_ns, row.t_done_ns}};
  for (const auto& pair : pairs) {
    if (!pair.first || !pair.second || *pair.first <= *pair.second) continue;
    return error(pair.second_key, fmt::format("found {}, expected at or after {} = {}",
                                              *pair.second, pair.first_key, *pair.first));
  }
  for (size_t i = 0; i < row.events.size(); ++i) {
    const auto& event = row.events[i];
    if (event.tokens < 0) {
      return error(fmt::format("events/{}/2", i),
                   fmt::format("found {}, expected at least 0", event.tokens));
    }
    if (i > 0 && event.t_kernel_ns < row.events[i - 1].t_kernel_ns) {
      return error(fmt::format("events/{}/0", i),
                   fmt::format("found {}, expected at or after the event before, {}",
                               event.t_kernel_ns, row.events[i - 1].t_kernel_ns));
    }
  }
  if (row.status != Status::kOk) return {};
  if (!row.t_send_ns) return error("t_send_ns", "found null in an ok row");
  if (!row.t_first_token_ns) return error("t_first_token_ns", "found null in an ok row");
  if (!row.t_last_token_ns) return error("t_last_token_ns", "found null in an ok row");
  if (row.output_tokens && *row.output_tokens < 1) {
    return error("output_tokens", "found 0 in an ok row, expected at least 1");
  }
  return {};
}

}  // namespace prony::record
