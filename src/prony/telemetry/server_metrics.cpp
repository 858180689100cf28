#include "prony/telemetry/server_metrics.hpp"

#include <algorithm>
#include <cmath>

namespace prony::telemetry {
namespace {

using M = ServerMetric;

constexpr std::array<ServerMetricInfo, kServerMetrics> kInfo = {{
    {"running", "requests", false},
    {"waiting", "requests", false},
    {"kv_usage", "fraction", false},
    {"prompt_tokens", "tokens", true},
    {"generation_tokens", "tokens", true},
    {"prefix_queries", "tokens", true},
    {"prefix_hits", "tokens", true},
    {"preemptions", "requests", true},
    {"requests", "requests", true},
    {"ttft_sum", "s", true},
    {"ttft_count", "requests", true},
    {"e2e_sum", "s", true},
    {"e2e_count", "requests", true},
}};

// `rank`: of several names for one thing, the lowest rank that occurs counts (a server in
// transition shows the old name beside the new one).
struct Name {
  std::string_view text;
  ServerMetric metric;
  int rank = 0;
};

constexpr Name kVllm[] = {
    {"vllm:num_requests_running", M::kRunning},
    {"vllm:num_requests_waiting", M::kWaiting},
    {"vllm:kv_cache_usage_perc", M::kKvUsage},
    {"vllm:gpu_cache_usage_perc", M::kKvUsage, 1},
    {"vllm:prompt_tokens_total", M::kPromptTokens},
    {"vllm:generation_tokens_total", M::kGenerationTokens},
    {"vllm:prefix_cache_queries_total", M::kPrefixQueries},
    {"vllm:gpu_prefix_cache_queries_total", M::kPrefixQueries, 1},
    {"vllm:prefix_cache_hits_total", M::kPrefixHits},
    {"vllm:gpu_prefix_cache_hits_total", M::kPrefixHits, 1},
    {"vllm:num_preemptions_total", M::kPreemptions},
    {"vllm:request_success_total", M::kRequests},
    {"vllm:time_to_first_token_seconds_sum", M::kTtftSum},
    {"vllm:time_to_first_token_seconds_count", M::kTtftCount},
    {"vllm:e2e_request_latency_seconds_sum", M::kE2eSum},
    {"vllm:e2e_request_latency_seconds_count", M::kE2eCount},
};

// Prompt tokens are the queries of SGLang's prefix cache, which counts only what it found.
constexpr Name kSglang[] = {
    {"sglang:num_running_reqs", M::kRunning},
    {"sglang:num_queue_reqs", M::kWaiting},
    {"sglang:token_usage", M::kKvUsage},
    {"sglang:prompt_tokens_total", M::kPromptTokens},
    {"sglang:prompt_tokens_total", M::kPrefixQueries},
    {"sglang:generation_tokens_total", M::kGenerationTokens},
    {"sglang:cached_tokens_total", M::kPrefixHits},
    {"sglang:num_retracted_requests_total", M::kPreemptions},
    {"sglang:num_requests_total", M::kRequests},
    {"sglang:time_to_first_token_seconds_sum", M::kTtftSum},
    {"sglang:time_to_first_token_seconds_count", M::kTtftCount},
    {"sglang:e2e_request_latency_seconds_sum", M::kE2eSum},
    {"sglang:e2e_request_latency_seconds_count", M::kE2eCount},
};

constexpr Name kLlamacpp[] = {
    {"llamacpp:requests_processing", M::kRunning},
    {"llamacpp:requests_deferred", M::kWaiting},
    {"llamacpp:kv_cache_usage_ratio", M::kKvUsage},
    {"llamacpp:prompt_tokens_total", M::kPromptTokens},
    {"llamacpp:tokens_predicted_total", M::kGenerationTokens},
};

constexpr Name kTgi[] = {
    {"tgi_batch_current_size", M::kRunning},
    {"tgi_queue_size", M::kWaiting},
    {"tgi_request_input_length_sum", M::kPromptTokens},
    {"tgi_request_generated_tokens_sum", M::kGenerationTokens},
    {"tgi_request_success", M::kRequests},
    {"tgi_request_success_total", M::kRequests, 1},
    {"tgi_request_duration_sum", M::kE2eSum},
    {"tgi_request_duration_count", M::kE2eCount},
};

// The samples of one server's names; `found` counts them.
template <size_t n>
ServerSample collect(const MetricsText& text, std::string_view server, const Name (&names)[n],
                     int64_t& found) {
  ServerSample out;
  out.names = server;
  std::array<int, kServerMetrics> rank{};
  found = 0;
  for (const auto& sample : text.samples) {
    for (const auto& name : names) {
      if (sample.name != name.text || !std::isfinite(sample.value)) continue;
      ++found;
      auto& value = out[name.metric];
      auto& best = rank[static_cast<size_t>(name.metric)];
      if (!value || name.rank < best) {
        value = sample.value;
        best = name.rank;
      } else if (name.rank == best) {
        value = name.metric == M::kKvUsage ? std::max(*value, sample.value) : *value + sample.value;
      }
    }
  }
  return out;
}

}  // namespace

const ServerMetricInfo& server_metric_info(ServerMetric metric) {
  return kInfo[static_cast<size_t>(metric)];
}

std::optional<ServerSample> read_server_metrics(const MetricsText& text) {
  std::optional<ServerSample> best;
  int64_t most = 0;
  const auto consider = [&](std::string_view server, const auto& names) {
    int64_t found = 0;
    auto sample = collect(text, server, names, found);
    if (found <= most) return;
    most = found;
    best = sample;
  };
  consider("vllm", kVllm);
  consider("sglang", kSglang);
  consider("llamacpp", kLlamacpp);
  consider("tgi", kTgi);
  return best;
}

}  // namespace prony::telemetry
