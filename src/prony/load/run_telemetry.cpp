#include "prony/load/run_telemetry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "prony/core/system.hpp"
#include "prony/record/row_metrics.hpp"

namespace prony::load {
namespace {

// A scrape that takes longer is given up; the next one comes at its time.
constexpr core::Nanos kScrapeTimeout = 5 * core::kNanosPerSecond;

// Datasets whose prompts are made here, each beginning with a word of its own.
constexpr std::array kOwnPrompts = {"random", "azure", "schedule", "burstgpt", "csv"};

void add_count(std::optional<int64_t>& sum, const std::optional<int32_t>& count) {
  if (!count) {
    sum.reset();
  } else if (sum) {
    *sum += *count;
  }
}

Result<telemetry::ServerScraper::Fetch> make_fetch(const BenchOptions& options,
                                                   const Endpoint& endpoint) {
  const bool automatic = options.server_metrics == "auto";
  auto url = automatic ? parse_base_url(endpoint.base_url)
                       : net::parse_url(options.server_metrics, "--server-metrics");
  if (!url) return url.error();
  if (automatic) url.value().path += "/metrics";
  auto& origin = url.value().origin;
  origin.verify_peer = endpoint.origin.verify_peer;
  origin.ca_file = endpoint.origin.ca_file;
  // The endpoint's key is for the endpoint alone.
  const bool same = origin.host == endpoint.origin.host && origin.port == endpoint.origin.port &&
                    origin.tls == endpoint.origin.tls;
  auto headers = same ? endpoint.headers : net::Headers();
  headers.emplace_back("Accept", "text/plain;version=0.0.4");
  headers.emplace_back("Connection", "close");
  return telemetry::ServerScraper::Fetch(
      [url = url.value(), headers = std::move(headers)]() -> Result<std::string> {
        auto answer = net::fetch(url, "GET", "", headers, kScrapeTimeout);
        if (!answer) return answer.error();
        if (answer.value().status != 200) {
          return environment_error(fmt::format("{}: http {}", url.path, answer.value().status));
        }
        return std::move(answer.value().body);
      });
}

}  // namespace

void SumsOfRows::add(const record::RequestRow& row) {
  if (!row.t_send_ns) return;
  ++sums_.attempted;
  if (row.status != record::Status::kOk) return;
  ++sums_.completed;
  add_count(sums_.prompt_tokens, row.prompt_tokens);
  add_count(sums_.output_tokens, row.output_tokens);
  if (const auto ttft = record::ttft_ms(row)) {
    ttft_ms_ += *ttft;
    ++ttfts_;
  }
  if (const auto e2e = record::e2e_ms(row)) {
    e2e_ms_ += *e2e;
    ++e2es_;
  }
}

telemetry::ClientSums SumsOfRows::sums() const {
  auto out = sums_;
  if (ttfts_ > 0) out.ttft_mean_ms = ttft_ms_ / static_cast<double>(ttfts_);
  if (e2es_ > 0) out.e2e_mean_ms = e2e_ms_ / static_cast<double>(e2es_);
  return out;
}

telemetry::ImpliedHits implied_hits(const BenchOptions& options, const workload::Schedule& schedule,
                                    int64_t sent) {
  if (std::find(kOwnPrompts.begin(), kOwnPrompts.end(), options.dataset) == kOwnPrompts.end()) {
    return std::nullopt;
  }
  if (schedule.block_tokens > 0) return std::nullopt;  // shares more than groups tell
  std::unordered_set<int32_t> seen;
  double shared = 0, all = 0;
  const auto count = std::min(static_cast<size_t>(sent), schedule.entries.size());
  for (const auto& entry : std::span(schedule.entries).first(count)) {
    if (entry.turn > 0) return std::nullopt;
    all += entry.input_tokens;
    if (entry.prefix_group < 0) continue;
    if (!seen.insert(entry.prefix_group).second) shared += entry.prefix_tokens;
  }
  return all > 0 ? std::optional(shared / all) : std::nullopt;
}

Result<void> check_telemetry(const BenchOptions& options) {
  // Below, a server that writes its metrics in Python would do little else.
  constexpr double kLeast = 0.05, kMost = 3600;
  if (!(options.metrics_interval_s >= kLeast && options.metrics_interval_s <= kMost)) {
    return invalid_argument(fmt::format("--metrics-interval: found {:g}, expected {:g} to {:g} s",
                                        options.metrics_interval_s, kLeast, kMost));
  }
  if (options.server_metrics == "auto" || options.server_metrics == "off") return {};
  const auto url = net::parse_url(options.server_metrics, "--server-metrics");
  return url.ok() ? Result<void>() : Result<void>(url.error());
}

Result<std::unique_ptr<telemetry::Session>> open_telemetry(const BenchOptions& options,
                                                           const Endpoint& endpoint) {
  telemetry::SessionOptions session;
  session.interval_ns = static_cast<core::Nanos>(std::llround(options.metrics_interval_s * 1e9));
  session.gpu = options.gpu_telemetry == "auto";
  session.endpoint_is_local = telemetry::is_local_address(endpoint.address.ip);
  if (auto library = core::environment_variable("PRONY_NVML"); library && !library->empty()) {
    session.nvml_library = *library;
  }
  if (options.server_metrics != "off") {
    auto fetch = make_fetch(options, endpoint);
    if (!fetch) return fetch.error();
    session.fetch = std::move(fetch).value();
    session.metrics_required = options.server_metrics != "auto";
  }
  return telemetry::Session::create(session);
}

void add_telemetry(const telemetry::Session& session, const telemetry::ClientSums& sums,
                   telemetry::ImpliedHits implied, record::Record& record) {
  auto outcome = session.finish(sums, implied);
  record.telemetry = std::move(outcome.telemetry);
  if (!outcome.gpus.is_null()) record.environment.gpus = std::move(outcome.gpus);
  auto& warnings = record.validity.warnings;
  warnings.insert(warnings.end(), outcome.warnings.begin(), outcome.warnings.end());
}

}  // namespace prony::load
