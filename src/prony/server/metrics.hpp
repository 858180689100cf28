// Metrics: the server's counters, gauges and histograms, written for Prometheus under vLLM's names,
// so that existing dashboards and our own scraper read Prony like vLLM. The step loop updates, the
// event loop scrapes. Thread safety: all members any thread (one mutex, touched a few times a
// step).
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/server/output_stream.hpp"

namespace prony::server {

/// Everything about one finished request that a histogram wants. Instants in CLOCK_MONOTONIC ns.
struct RequestTimes {
  core::Nanos arrived_ns = 0;
  core::Nanos scheduled_ns = 0;    // first step that computed some of it
  core::Nanos first_token_ns = 0;  // 0: none
  core::Nanos last_token_ns = 0;
  core::Nanos finished_ns = 0;
  int32_t prompt_tokens = 0;
  int32_t output_tokens = 0;
};

/// What the scheduler says of itself after a step; counters run from the start of the server.
struct SchedulerGauges {
  int64_t running = 0, waiting = 0;
  double kv_usage = 0;  // share of blocks in use, 0 to 1
  int64_t preemptions = 0;
  int64_t prefix_queries_tokens = 0, prefix_hits_tokens = 0;
};

class Metrics {
 public:
  explicit Metrics(std::string model_name);

  void on_step(int32_t tokens, const SchedulerGauges& gauges);
  void on_prompt_done(int32_t prompt_tokens, int32_t cached_tokens);
  void on_first_token(core::Nanos since_arrival_ns);
  void on_next_token(core::Nanos gap_ns);
  void on_finished(const RequestTimes& times, Finish finish);

  /// Prometheus text format 0.0.4.
  std::string text() const;

 private:
  struct Histogram {
    const char* name;
    const char* help;
    std::vector<double> bounds;
    std::vector<int64_t> counts;  // one more than bounds
    double sum = 0;
    int64_t total = 0;
    void observe(double value);
  };

  std::string label_;
  mutable std::mutex mutex_;
  std::vector<Histogram> histograms_;  // in the order of the enumerators in metrics.cpp
  SchedulerGauges gauges_;
  int64_t prompt_tokens_ = 0, cached_tokens_ = 0, generated_tokens_ = 0;
  std::map<std::string, int64_t> finished_;  // by reason
};

}  // namespace prony::server
