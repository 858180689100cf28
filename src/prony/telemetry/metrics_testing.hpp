// What holds for any text taken as a /metrics: for the fuzzer and for the replay of its corpus.
// Not for production. Thread safety: pure functions.
#pragma once
#include <algorithm>
#include <cmath>
#include <string_view>

#include "prony/telemetry/server_metrics.hpp"

namespace prony::telemetry {

inline bool check_any_metrics(std::string_view text) {
  const auto parsed = parse_metrics_text(text);
  const auto lines = std::count(text.begin(), text.end(), '\n') + 1;
  if (static_cast<int64_t>(parsed.samples.size()) + parsed.bad_lines > lines) return false;
  for (const auto& sample : parsed.samples) {
    const bool inside = sample.name.data() >= text.data() &&
                        sample.name.data() + sample.name.size() <= text.data() + text.size();
    if (sample.name.empty() || !inside || sample.name.find('\n') != std::string_view::npos) {
      return false;
    }
  }
  const auto server = read_server_metrics(parsed);
  if (!server) return true;
  return !parsed.samples.empty() &&
         std::any_of(server->values.begin(), server->values.end(),
                     [](const auto& value) { return value.has_value(); });
}

}  // namespace prony::telemetry
