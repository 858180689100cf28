// The Prometheus text format, as far as a scraper needs it: name and value of every sample. Labels
// are checked and left out; time stamps and exemplars are skipped. A line that is none of this is
// counted and skipped, never an error: one odd line must not cost a run its telemetry.
// Source: Prometheus text exposition format 0.0.4 and OpenMetrics 1.0.
// Thread safety: pure functions. Views point into the text.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace prony::telemetry {

struct MetricSample {
  std::string_view name;
  double value = 0;  // may be infinite or NaN, as the format allows
};

struct MetricsText {
  std::vector<MetricSample> samples;  // in the order of the text
  int64_t bad_lines = 0;
};

MetricsText parse_metrics_text(std::string_view text);

}  // namespace prony::telemetry
