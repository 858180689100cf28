// Record: what a run was and what came out, the one document of measured, predicted and simulated
// runs (schema prony.record/1, docs/schema/prony.record.1.json). A result does not exist without
// its environment: the validator refuses it.
// Thread safety: values and pure functions.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/record/metrics.hpp"

namespace prony::record {

inline constexpr const char* kRecordSchema = "prony.record/1";

enum class Source { kMeasured, kPredicted, kSimulated };
const char* source_name(Source source);

/// What was under test. A server that emulates its timing is kEmulated, never kEndpoint.
enum class SystemKind {
  kEndpoint,    // a server that really computes
  kEmulated,    // a server whose timing is emulated (header X-Prony-Device, /version)
  kMock,        // an endpoint of known timing and faults
  kDeployment,  // model, hardware and engine on paper: predicted and simulated runs
};
const char* system_kind_name(SystemKind kind);

struct System {
  SystemKind kind = SystemKind::kEndpoint;
  std::string model;                          // as asked for
  std::string endpoint;                       // URL; credentials in it are removed on writing
  std::string endpoint_type;                  // "openai-chat", ...
  std::string server;                         // as the server calls itself, with version
  std::string device;                         // hardware id or description
  core::Json details = core::Json::object();  // anything else, e.g. tp, dtypes, scheduler limits
  bool operator==(const System&) const = default;
};

struct Workload {
  std::string description;  // one line for people, e.g. "azure conv slice, lengths scaled to 1/8"
  std::string dataset;      // "random", "azure", ...
  std::string arrival;      // "poisson", "gamma", "constant", "trace", "closed"
  std::optional<double> request_rate;      // requests/s; nullopt: unlimited
  std::optional<int64_t> max_concurrency;  // nullopt: unlimited
  int64_t num_requests = 0;                // in the schedule
  uint64_t seed = 0;
  core::Json details = core::Json::object();  // effective options: burstiness, lengths, time-outs
  bool operator==(const Workload&) const = default;
};

/// The machine and the program that produced the record. Captured by
/// telemetry::capture_environment.
struct Environment {
  std::string commit, version;
  std::string cpu;
  int64_t cores = 0;  // that this process may use
  int64_t memory_bytes = 0;
  std::string kernel, compiler;
  double load_average = 0;               // one minute, at the start
  std::optional<double> steal_fraction;  // over the run; nullopt where nothing ran or no /proc/stat
  core::Json gpus = core::Json::array();
  bool operator==(const Environment&) const = default;
};

struct Validity {
  bool valid = true;
  std::vector<std::string> reasons;   // why not; empty if valid
  std::vector<std::string> warnings;  // worth knowing, does not void the run
  /// Adds a reason and turns `valid` off.
  void refuse(std::string reason);
  bool operator==(const Validity&) const = default;
};

struct Run {
  std::string started_at;            // UTC, "2026-11-30T19:09:34Z"
  std::vector<std::string> command;  // as given, without secrets
  std::string label;
  bool interrupted = false;
  core::Json metadata = core::Json::object();  // --metadata K=V
  bool operator==(const Run&) const = default;
};

struct Record {
  Source source = Source::kMeasured;
  System system;
  Workload workload;
  Environment environment;
  Metrics metrics;
  Validity validity;
  Run run;
  // Optional sections, absent if null: the client's own measurement of itself, the verdict on
  // --slo, simulation cost, replications, prediction details, server and GPU telemetry,
  // the figures of other tools by their names.
  core::Json client, slo, simulation, replications, prediction, telemetry, compat;
  bool operator==(const Record&) const = default;
};

core::Json record_to_json(const Record& record);
/// Validates, then reads. `name` is the file or flag that errors name.
Result<Record> record_from_json(const core::Json& json, std::string_view name);

/// Refuses what no run could produce: missing or unknown keys, wrong types, numbers that are not
/// finite, unknown source, counts that do not add up, percentiles out of order or shown for too few
/// samples, a measured deployment. Error: kInvalidArgument, "NAME: /metrics/ttft_ms/p50: found ...,
/// expected ...".
Result<void> validate_record(const core::Json& json, std::string_view name);

/// Valid pretty JSON with a final newline. Error: as validate_record (then a bug of ours).
Result<std::string> record_text(const Record& record);
/// record_text, written atomically.
Result<void> write_record(const std::string& path, const Record& record);
Result<Record> read_record(const std::string& path);

/// The JSON Schema (draft 2020-12) of a record, generated from the validator's own tables.
core::Json record_json_schema();

}  // namespace prony::record
