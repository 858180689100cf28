// ServerScraper: reads a server's /metrics before, during and after a load: gauges and rates over
// time, and what its counters gained in between. An instant of a sample is the middle of its
// exchange, on CLOCK_MONOTONIC like every stamp of the run.
// Thread safety: one thread at a time; the owner lets scrape() run on a thread of its own between
// begin() and end().
#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/telemetry/series.hpp"
#include "prony/telemetry/server_metrics.hpp"

namespace prony::telemetry {

/// What the counters gained from begin() to end(); nullopt: the server has no such counter.
struct ServerDifferences {
  std::string names;  // as ServerSample
  core::Nanos t_begin_ns = 0, t_end_ns = 0;
  bool restarted = false;       // a counter fell: no difference means anything
  double running_at_begin = 0;  // requests of others
  std::array<std::optional<double>, kServerMetrics> gained;
  const std::optional<double>& operator[](ServerMetric metric) const {
    return gained[static_cast<size_t>(metric)];
  }
};

class ServerScraper {
 public:
  /// The text of one scrape; must be bounded in time.
  using Fetch = std::function<Result<std::string>()>;
  explicit ServerScraper(Fetch fetch);

  /// One scrape, to see that there is something to read. Error: as the fetch, or kEnvironment if no
  /// name in the text is known.
  Result<void> open();

  /// Reads the counters that differences start from, and those they end with. Servers count a
  /// little after they answer, so both read until two scrapes in a row agree, for two seconds at
  /// most; `quiet` says that nothing was sent before, so one scrape is enough.
  void begin(bool quiet);
  void end();
  /// One scrape between the two. A failed one is counted and otherwise ignored.
  void scrape();

  /// nullopt unless begin() and end() both got an answer.
  std::optional<ServerDifferences> differences() const;
  /// Those with samples.
  std::vector<core::Json> series_json() const;
  /// {names, scrapes, failed_scrapes, scrape_ms_mean, scrape_ms_max, bad_lines}.
  core::Json summary_json() const;
  /// Why the first failed scrape failed; empty if none did.
  const std::string& first_error() const { return first_error_; }

 private:
  struct Point {
    core::Nanos t_ns = 0;
    ServerSample sample;
  };
  std::optional<Point> read();
  std::optional<Point> read_settled();
  void add_to_series(const Point& point);

  Fetch fetch_;
  std::optional<Point> begin_, end_, last_;
  std::array<std::optional<Series>, kServerMetrics> series_;
  int64_t scrapes_ = 0, failed_ = 0, bad_lines_ = 0;
  core::Nanos took_sum_ns_ = 0, took_max_ns_ = 0;
  std::string first_error_;
};

}  // namespace prony::telemetry
