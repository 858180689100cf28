// What the servers' /metrics have in common, under one name: vLLM (whose names Prony's server and
// mock use), SGLang, llama.cpp and TGI. Several samples of one name (engines, ranks, reasons) are
// added up; the use of KV cache is the fullest one.
// Source: each project's documentation of its metrics; docs/telemetry.md has the table.
// Thread safety: pure functions.
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "prony/telemetry/prometheus.hpp"

namespace prony::telemetry {

enum class ServerMetric : size_t {
  kRunning,
  kWaiting,
  kKvUsage,
  kPromptTokens,
  kGenerationTokens,
  kPrefixQueries,
  kPrefixHits,
  kPreemptions,
  kRequests,
  kTtftSum,
  kTtftCount,
  kE2eSum,
  kE2eCount,
};
inline constexpr size_t kServerMetrics = 13;

struct ServerMetricInfo {
  const char* name;
  const char* unit;
  bool counter;  // only differences mean something
};
const ServerMetricInfo& server_metric_info(ServerMetric metric);

struct ServerSample {
  std::string_view names;  // whose: "vllm", "sglang", "llamacpp", "tgi"
  std::array<std::optional<double>, kServerMetrics> values;
  std::optional<double>& operator[](ServerMetric metric) {
    return values[static_cast<size_t>(metric)];
  }
  const std::optional<double>& operator[](ServerMetric metric) const {
    return values[static_cast<size_t>(metric)];
  }
};

/// nullopt if the text has no name that is known. Where names of several servers occur (a gateway
/// that shows its own beside the engine's), those of the server with the most count.
std::optional<ServerSample> read_server_metrics(const MetricsText& text);

}  // namespace prony::telemetry
