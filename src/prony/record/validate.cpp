// What the JSON Schema cannot say: sums, orders and agreements between the parts of a record.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "prony/record/json_schema.hpp"
#include "prony/record/latency_collector.hpp"
#include "prony/record/record.hpp"
#include "prony/record/request_row.hpp"
#include "prony/record/telemetry_schema.hpp"

namespace prony::record {
namespace {

using core::Json;

constexpr std::array kLatencies = {"ttft_ms",
                                   "tpot_ms",
                                   "itl_ms",
                                   "icl_ms",
                                   "e2e_ms",
                                   "ttft_intended_ms",
                                   "e2e_intended_ms",
                                   "send_lag_ms",
                                   "read_lag_ms",
                                   "queue_ms",
                                   "ttfe_ms",
                                   "ttfo_ms",
                                   "ntpot_ms",
                                   "tpot_vllm_ms",
                                   "connect_ms",
                                   "user_tokens_per_s",
                                   "prefill_tokens_per_s"};
// Those with at most one value a completed request.
constexpr std::array kOnePerCompleted = {
    "ttft_ms", "tpot_ms",  "e2e_ms",       "ttft_intended_ms",  "e2e_intended_ms",     "ttfe_ms",
    "ttfo_ms", "ntpot_ms", "tpot_vllm_ms", "user_tokens_per_s", "prefill_tokens_per_s"};

class Validator {
 public:
  Validator(const Json& record, std::string_view name) : record_(record), name_(name) {}

  Result<void> run() {
    check_source();
    check_counts();
    for (const char* latency : kLatencies) check_latency(latency);
    check_text();
    if (error_) return *error_;
    return {};
  }

 private:
  // Only the first fault is told.
  void fail(std::string_view path, std::string_view reason) {
    if (!error_) error_ = invalid_argument(fmt::format("{}: {}: {}", name_, path, reason));
  }
  void expect(bool condition, std::string_view path, std::string_view reason) {
    if (!condition) fail(path, reason);
  }

  // Not null; records of earlier versions lack a few keys.
  static bool known(const Json& object, const char* key) {
    return object.contains(key) && !object.at(key).is_null();
  }
  const Json& metric(const char* key) const { return record_.at("metrics").at(key); }
  bool counted() const { return record_.at("source") != "predicted"; }

  void check_source() {
    const bool deployment = record_.at("system").at("kind") == "deployment";
    const bool measured = record_.at("source") == "measured";
    expect(deployment != measured, "/system/kind",
           fmt::format("found {} in a {} record, expected {}",
                       describe(record_.at("system").at("kind")),
                       record_.at("source").get<std::string>(),
                       measured ? "endpoint, emulated or mock" : "deployment"));
    const auto& validity = record_.at("validity");
    expect(validity.at("valid").get<bool>() == validity.at("reasons").empty(), "/validity/valid",
           fmt::format("found {} with {} reasons, expected valid exactly when there is no reason",
                       validity.at("valid").dump(), validity.at("reasons").size()));
  }

  void check_counts() {
    for (const char* key : {"attempted", "completed", "failed"}) {
      expect(!counted() || !metric(key).is_null(), fmt::format("/metrics/{}", key),
             "found null, expected a count (only a predicted record may lack it)");
    }
    int64_t errors = 0, http_errors = 0;
    for (const auto& [status, count] : metric("errors").items()) {
      expect(parse_status(status).has_value() && status != "ok",
             fmt::format("/metrics/errors/{}", one_line(status)), "unknown status of a failure");
      errors += count.get<int64_t>();
    }
    for (const auto& [code, count] : metric("http_errors").items()) {
      expect(code.size() == 3 && code.find_first_not_of("0123456789") == std::string::npos,
             fmt::format("/metrics/http_errors/{}", one_line(code)),
             "expected a code of three digits");
      http_errors += count.get<int64_t>();
    }
    if (!metric("failed").is_null() && !metric("completed").is_null() &&
        !metric("attempted").is_null()) {
      const auto failed = metric("failed").get<int64_t>();
      expect_equal("/metrics/failed", failed, "attempted - completed",
                   metric("attempted").get<int64_t>() - metric("completed").get<int64_t>());
      expect_equal("/metrics/errors", errors, "failed", failed);
      expect(http_errors <= failed, "/metrics/http_errors",
             fmt::format("sum is {}, expected at most failed = {}", http_errors, failed));
    }
    for (const char* key : {"input_tokens", "output_tokens"}) check_tally(key);
    check_error_slices();
    check_groups("turns");
    check_groups("stages");
    expect(metric("token_source_mixed").get<bool>() == (metric("token_sources").size() > 1),
           "/metrics/token_source_mixed", "does not agree with token_sources");
  }

  void check_tally(const char* key) {
    const auto& tally = metric(key);
    const auto count = [&](const char* part) { return tally.at(part).get<int64_t>(); };
    expect_equal(fmt::format("/metrics/{}/requests", key), count("requests"),
                 "equal + fewer + more + unknown",
                 count("equal") + count("fewer") + count("more") + count("unknown"));
  }

  // Failures over time are the failures, and every attempt is in some slice.
  void check_error_slices() {
    const auto& metrics = record_.at("metrics");
    if (!metrics.contains("error_slices") || metrics.at("error_slices").empty()) return;
    int64_t attempted = 0;
    std::map<std::string, int64_t> errors;
    for (const auto& slice : metrics.at("error_slices")) {
      attempted += slice.at("attempted").get<int64_t>();
      for (const auto& [status, count] : slice.at("errors").items()) {
        errors[status] += count.get<int64_t>();
      }
    }
    if (!metric("attempted").is_null()) {
      expect_equal("/metrics/error_slices", attempted, "attempted",
                   metric("attempted").get<int64_t>());
    }
    expect(Json(errors) == metric("errors"), "/metrics/error_slices",
           "the failures do not add up to /metrics/errors");
  }

  void check_groups(const char* name) {
    const auto& metrics = record_.at("metrics");
    if (!metrics.contains(name)) return;
    for (size_t i = 0; i < metrics.at(name).size(); ++i) {
      const auto& group = metrics.at(name).at(i);
      const auto path = fmt::format("/metrics/{}/{}", name, i);
      expect(group.at("completed").get<int64_t>() <= group.at("attempted").get<int64_t>(),
             path + "/completed", "more than attempted");
      for (const char* key : {"ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"}) {
        const auto& stats = group.at(key);
        if (stats.is_null()) continue;
        check_order(stats, path + "/" + key);
        if (!stats.at("n").is_null()) {
          check_samples(stats, path + "/" + key, stats.at("n").get<int64_t>());
        }
      }
    }
  }

  void expect_equal(std::string_view path, int64_t found, const char* what, int64_t expected) {
    expect(found == expected, path,
           fmt::format("found {}, expected {} = {}", found, what, expected));
  }

  void check_latency(const char* key) {
    if (!known(record_.at("metrics"), key)) return;
    const auto& stats = metric(key);
    const std::string path = fmt::format("/metrics/{}", key);
    check_order(stats, path);
    if (stats.at("n").is_null()) {
      expect(!counted(), path + "/n", "found null, expected a count");
      return;
    }
    check_samples(stats, path, stats.at("n").get<int64_t>());
    for (const char* single : kOnePerCompleted) {
      if (std::string_view(single) != key || metric("completed").is_null()) continue;
      const auto completed = metric("completed").get<int64_t>();
      expect(stats.at("n").get<int64_t>() <= completed, path + "/n",
             fmt::format("found {}, expected at most completed = {}", stats.at("n").dump(),
                         completed));
    }
  }

  // Each known value at least the known one before it.
  void check_order(const Json& stats, const std::string& path) {
    constexpr std::array kOrder = {"min", "p50",  "p75",   "p90", "p95",
                                   "p99", "p999", "p9999", "max"};
    const char* last = nullptr;
    for (const char* key : kOrder) {
      if (!known(stats, key)) continue;
      if (last != nullptr) {
        expect(stats.at(last).get<double>() <= stats.at(key).get<double>(), path + "/" + key,
               fmt::format("found {}, expected at least {} = {}", stats.at(key).dump(), last,
                           stats.at(last).dump()));
      }
      last = key;
    }
    if (!stats.at("mean").is_null() && !stats.at("min").is_null() && !stats.at("max").is_null()) {
      const auto mean = stats.at("mean").get<double>();
      const auto min = stats.at("min").get<double>(), max = stats.at("max").get<double>();
      const double slack = 1e-9 * std::max(std::fabs(min), std::fabs(max));  // rounding of a sum
      expect(min - slack <= mean && mean <= max + slack, path + "/mean",
             fmt::format("found {}, expected between min and max", mean));
    }
    for (const auto& [key, interval] : stats.at("ci95").items()) {
      expect(interval.is_null() || interval[0].get<double>() <= interval[1].get<double>(),
             path + "/ci95/" + key, "lower end above upper end");
    }
  }

  // Nothing is shown for which there were not enough samples, and nothing else hidden.
  void check_samples(const Json& stats, const std::string& path, int64_t n) {
    const auto allowed = [&](const char* key, int64_t needed) {
      expect(n >= needed || !known(stats, key), path + "/" + key,
             fmt::format("found {} for n = {}, expected null below n = {}",
                         describe(stats.value(key, Json())), n, needed));
    };
    for (const char* key : {"mean", "min", "max", "p50", "p75"}) allowed(key, 1);
    allowed("sd", 2);
    allowed("p90", samples_needed(0.9));
    allowed("p95", samples_needed(0.95));
    allowed("p99", samples_needed(0.99));
    allowed("p999", samples_needed(0.999));
    allowed("p9999", samples_needed(0.9999));
    if (n < 1) return;
    for (const char* key : {"mean", "min", "max"}) {
      expect(!stats.at(key).is_null(), path + "/" + key,
             fmt::format("found null for n = {}, expected a number", n));
    }
  }

  void check_text() {
    const auto& run = record_.at("run");
    const auto started = run.at("started_at").get<std::string>();
    constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";
    bool fits = started.size() == kForm.size();
    for (size_t i = 0; fits && i < kForm.size(); ++i) {
      fits = kForm[i] == 'd' ? started[i] >= '0' && started[i] <= '9' : started[i] == kForm[i];
    }
    expect(fits, "/run/started_at",
           fmt::format("found '{}', expected UTC like 2026-11-30T19:09:34Z", one_line(started)));
    for (const char* key : {"commit", "version", "cpu", "kernel", "compiler"}) {
      expect(!record_.at("environment").at(key).get_ref<const std::string&>().empty(),
             fmt::format("/environment/{}", key), "found '', expected a value or 'unknown'");
    }
  }

  const Json& record_;
  std::string_view name_;
  std::optional<Error> error_;
};

}  // namespace

Result<void> validate_record(const Json& json, std::string_view name) {
  static const Json schema = record_json_schema();
  if (auto checked = check_schema(json, schema, name); !checked) return checked;
  if (json.contains("telemetry")) {
    if (auto checked = check_telemetry(json.at("telemetry"), name); !checked) return checked;
  }
  return Validator(json, name).run();
}

}  // namespace prony::record
