#include "prony/telemetry/cross_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace prony::telemetry {
namespace {

using core::Json;
using M = ServerMetric;

// Time that a request spends on the network and in the HTTP layers of both sides, which the server
// does not see: means may differ by so much whatever their size.
constexpr double kNetworkMs = 1;

std::optional<double> mean_ms(const ServerDifferences& server, M sum, M count) {
  if (!server[sum] || !server[count] || *server[count] <= 0) return std::nullopt;
  return 1000 * *server[sum] / *server[count];
}

class Checks {
 public:
  explicit Checks(CrossCheck& out) : out_(out) {}

  // `slack`: absolute difference that is always allowed.
  void compare(const char* what, const char* unit, std::optional<double> client,
               std::optional<double> server, double slack) {
    if (!client || !server) return;
    const double difference = *server - *client;
    const double size = std::max(std::fabs(*client), std::fabs(*server));
    const bool agree = std::fabs(difference) <= std::max(slack, kCountsAgree * size);
    const double relative = size == 0 ? 0 : difference / size;
    Json check = Json::object();
    check["what"] = what;
    check["unit"] = unit;
    check["client"] = *client;
    check["server"] = *server;
    check["relative_difference"] = relative;
    check["agree"] = agree;
    json_.push_back(std::move(check));
    if (agree) return;
    out_.warnings.push_back(
        fmt::format("{}: the client has {:.10g} {}, the server's /metrics {:.10g} "
                    "({:+.1f} %, agreement is within {:g} %)",
                    what, *client, unit, *server, 100 * relative, 100 * kCountsAgree));
  }
  Json take() { return std::move(json_); }

 private:
  CrossCheck& out_;
  Json json_ = Json::array();
};

std::optional<double> number(const std::optional<int64_t>& value) {
  return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

void check_sums(const ServerDifferences& server, const ClientSums& client, CrossCheck& out) {
  Checks checks(out);
  // llama.cpp counts the prompt tokens that it computed, without those it had in its cache.
  const bool whole_prompts = server.names != "llamacpp";
  const bool all_completed = client.completed == client.attempted;
  // What the server counted of a request that failed is not known here, so then only an excess
  // over everything that was sent tells something.
  if (all_completed) {
    checks.compare("requests", "requests", static_cast<double>(client.completed),
                   server[M::kRequests], 0);
    if (whole_prompts) {
      checks.compare("prompt tokens", "tokens", number(client.prompt_tokens),
                     server[M::kPromptTokens], 0);
    }
    checks.compare("output tokens", "tokens", number(client.output_tokens),
                   server[M::kGenerationTokens], 0);
    checks.compare("mean TTFT", "ms", client.ttft_mean_ms,
                   mean_ms(server, M::kTtftSum, M::kTtftCount), kNetworkMs);
    checks.compare("mean E2E", "ms", client.e2e_mean_ms, mean_ms(server, M::kE2eSum, M::kE2eCount),
                   kNetworkMs);
  }
  out.json["checks"] = checks.take();
  const auto finished = server[M::kRequests];
  const auto sent = static_cast<double>(client.attempted);
  const bool excess = finished && *finished > sent * (1 + kCountsAgree);
  if (excess || server.running_at_begin > 0) {
    out.warnings.push_back(fmt::format(
        "others used the server: it had {:g} requests in hand before the run and finished {} "
        "during it, of which {} were sent by this client",
        server.running_at_begin, finished ? fmt::format("{:g}", *finished) : "an unknown number",
        client.attempted));
  }
  out.json["others_seen"] = excess || server.running_at_begin > 0;
}

void check_prefix_cache(const ServerDifferences& server, const ClientSums& client,
                        ImpliedHits implied, CrossCheck& out) {
  const auto queries = server[M::kPrefixQueries], hits = server[M::kPrefixHits];
  if (!queries || !hits || *queries <= 0) return;
  const double share = std::clamp(*hits / *queries, 0.0, 1.0);
  Json json = Json::object();
  json["queries_tokens"] = *queries;
  json["hits_tokens"] = *hits;
  json["hit_fraction"] = share;
  json["implied_fraction"] = implied ? Json(*implied) : Json();
  json["as_implied"] = nullptr;
  if (implied) {
    const double per_request =
        *queries / static_cast<double>(std::max<int64_t>(1, client.attempted));
    const double above = std::max(kHitsAgree, std::min(1.0, kTemplateTokensMax / per_request));
    // Requests that share a prefix and come together all miss it, so less is not always a fault.
    const double below = std::max(2 * kHitsAgree, *implied / 4);
    const bool more = share > *implied + above, less = share < *implied - below;
    json["as_implied"] = !more && !less;
    if (more) {
      out.warnings.push_back(fmt::format(
          "the server found {:.1f} % of the prompt tokens in its prefix cache, the workload "
          "implies "
          "{:.1f} %: it had seen these prompts before, and its latencies are those of a warm cache",
          100 * share, 100 * *implied));
    } else if (less) {
      out.warnings.push_back(fmt::format(
          "the server found {:.1f} % of the prompt tokens in its prefix cache, the workload "
          "implies "
          "{:.1f} %: the cache is off, too small, or its blocks are longer than the shared prefix",
          100 * share, 100 * *implied));
    }
  }
  out.json["prefix_cache"] = std::move(json);
}

}  // namespace

CrossCheck cross_check(const ServerDifferences& server, const ClientSums& client,
                       ImpliedHits implied_hits) {
  CrossCheck out;
  out.json = Json::object();
  auto& differences = out.json["differences"] = Json::object();
  for (size_t i = 0; i < kServerMetrics; ++i) {
    const auto& info = server_metric_info(static_cast<M>(i));
    if (!info.counter) continue;
    differences[info.name] = server.gained[i] ? Json(*server.gained[i]) : Json();
  }
  if (server.restarted) {
    out.json["checks"] = Json::array();
    out.json["others_seen"] = false;
    out.warnings.push_back(
        "a counter of the server's /metrics fell during the run: it was restarted, so its counts "
        "say nothing");
    return out;
  }
  check_sums(server, client, out);
  check_prefix_cache(server, client, implied_hits, out);
  return out;
}

}  // namespace prony::telemetry
