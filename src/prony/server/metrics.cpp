#include "prony/server/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace prony::server {
namespace {

enum Series : size_t {
  kTtft,
  kInterToken,
  kTimePerOutputToken,
  kEndToEnd,
  kQueue,
  kPrefill,
  kDecode,
  kInference,
  kPromptTokens,
  kGenerationTokens,
  kIterationTokens,
  kSeriesCount,
};

// Bucket bounds of vLLM's metrics (vllm/v1/metrics/loggers.py), kept so that dashboards agree.
const std::vector<double> kTtftBounds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                         0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                         20,    40,    80,   160,  640,  2560};
const std::vector<double> kTokenBounds = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                          0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
const std::vector<double> kRequestBounds = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                            30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
const std::vector<double> kCountBounds = {1,   2,    5,    10,   20,    50,    100,   200,
                                          500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

// A label value: backslash, quote and line feed escaped, as the text format asks.
std::string label_value(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

void Metrics::Histogram::observe(double value) {
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), value) - bounds.begin();
  ++counts[static_cast<size_t>(bucket)];
  sum += value;
  ++total;
}

Metrics::Metrics(std::string model_name)
    : label_(fmt::format("model_name=\"{}\",engine=\"0\"", label_value(model_name))) {
  const struct {
    const char *name, *help;
    const std::vector<double>& bounds;
  } kSeries[] = {
      {"time_to_first_token_seconds", "from arrival to the first token", kTtftBounds},
      {"inter_token_latency_seconds", "between successive tokens", kTokenBounds},
      {"request_time_per_output_token_seconds", "mean of a request after its first token",
       kTokenBounds},
      {"e2e_request_latency_seconds", "from arrival to the end", kRequestBounds},
      {"request_queue_time_seconds", "from arrival to the first step", kRequestBounds},
      {"request_prefill_time_seconds", "from the first step to the first token", kRequestBounds},
      {"request_decode_time_seconds", "from the first to the last token", kRequestBounds},
      {"request_inference_time_seconds", "from the first step to the end", kRequestBounds},
      {"request_prompt_tokens", "prompt tokens of finished requests", kCountBounds},
      {"request_generation_tokens", "output tokens of finished requests", kCountBounds},
      {"iteration_tokens_total", "tokens computed by one step", kCountBounds},
  };
  static_assert(std::size(kSeries) == kSeriesCount);
  for (const auto& series : kSeries) {
    histograms_.push_back({series.name, series.help, series.bounds,
                           std::vector<int64_t>(series.bounds.size() + 1), 0, 0});
  }
}

void Metrics::on_step(int32_t tokens, const SchedulerGauges& gauges) {
  const std::lock_guard lock(mutex_);
  if (tokens > 0) histograms_[kIterationTokens].observe(tokens);
  gauges_ = gauges;
}

void Metrics::on_prompt_done(int32_t prompt_tokens, int32_t cached_tokens) {
  const std::lock_guard lock(mutex_);
  prompt_tokens_ += prompt_tokens;
  cached_tokens_ += cached_tokens;
}

void Metrics::on_first_token(core::Nanos since_arrival_ns) {
  const std::lock_guard lock(mutex_);
  ++generated_tokens_;
  histograms_[kTtft].observe(core::to_seconds(since_arrival_ns));
}

void Metrics::on_next_token(core::Nanos gap_ns) {
  const std::lock_guard lock(mutex_);
  ++generated_tokens_;
  histograms_[kInterToken].observe(core::to_seconds(gap_ns));
}

void Metrics::on_finished(const RequestTimes& times, Finish finish) {
  const std::lock_guard lock(mutex_);
  ++finished_[finish_name(finish)];
  histograms_[kPromptTokens].observe(times.prompt_tokens);
  histograms_[kGenerationTokens].observe(times.output_tokens);
  histograms_[kEndToEnd].observe(core::to_seconds(times.finished_ns - times.arrived_ns));
  if (times.scheduled_ns == 0) return;
  histograms_[kQueue].observe(core::to_seconds(times.scheduled_ns - times.arrived_ns));
  histograms_[kInference].observe(core::to_seconds(times.finished_ns - times.scheduled_ns));
  if (times.first_token_ns == 0) return;
  const core::Nanos decode_ns = times.last_token_ns - times.first_token_ns;
  histograms_[kPrefill].observe(core::to_seconds(times.first_token_ns - times.scheduled_ns));
  histograms_[kDecode].observe(core::to_seconds(decode_ns));
  if (times.output_tokens > 1) {
    histograms_[kTimePerOutputToken].observe(core::to_seconds(decode_ns) /
                                             (times.output_tokens - 1));
  }
}

std::string Metrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  auto append = std::back_inserter(out);
  const auto declare = [&](const char* name, const char* kind, const char* help) {
    fmt::format_to(append, "# HELP vllm:{0} {1}\n# TYPE vllm:{0} {2}\n", name, help, kind);
  };
  const auto single = [&](const char* name, const char* kind, const char* help, auto value) {
    declare(name, kind, help);
    fmt::format_to(append, "vllm:{}{{{}}} {}\n", name, label_, value);
  };
  single("num_requests_running", "gauge", "requests in the running batch", gauges_.running);
  single("num_requests_waiting", "gauge", "requests waiting for a place", gauges_.waiting);
  single("kv_cache_usage_perc", "gauge", "share of KV blocks in use, 1 is full", gauges_.kv_usage);
  single("num_preemptions_total", "counter", "requests that lost their blocks",
         gauges_.preemptions);
  single("prefix_cache_queries_total", "counter", "prompt tokens looked up",
         gauges_.prefix_queries_tokens);
  single("prefix_cache_hits_total", "counter", "prompt tokens found", gauges_.prefix_hits_tokens);
  single("prompt_tokens_total", "counter", "prompt tokens of requests that got a token",
         prompt_tokens_);
  single("prompt_tokens_cached_total", "counter", "of these, from the prefix cache",
         cached_tokens_);
  single("generation_tokens_total", "counter", "tokens generated", generated_tokens_);
  declare("request_success_total", "counter", "finished requests by reason");
  for (const auto& [reason, count] : finished_) {
    fmt::format_to(append, "vllm:request_success_total{{{},finished_reason=\"{}\"}} {}\n", label_,
                   reason, count);
  }
  for (const auto& histogram : histograms_) {
    declare(histogram.name, "histogram", histogram.help);
    int64_t below = 0;
    for (size_t i = 0; i < histogram.counts.size(); ++i) {
      below += histogram.counts[i];
      const auto bound = i < histogram.bounds.size() ? fmt::format("{}", histogram.bounds[i])
                                                     : std::string("+Inf");
      fmt::format_to(append, "vllm:{}_bucket{{{},le=\"{}\"}} {}\n", histogram.name, label_, bound,
                     below);
    }
    fmt::format_to(append, "vllm:{0}_sum{{{1}}} {2}\nvllm:{0}_count{{{1}}} {3}\n", histogram.name,
                   label_, histogram.sum, histogram.total);
  }
  return out;
}

}  // namespace prony::server
