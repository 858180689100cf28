#include "prony/telemetry/server_scraper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace prony::telemetry {
namespace {

using core::Json;
using core::Nanos;
using M = ServerMetric;

constexpr Nanos kSettleMax = 2 * core::kNanosPerSecond;
constexpr Nanos kSettlePause = 50 * core::kNanosPerMilli;

// Counters shown over time as rates; the others only as differences.
bool shown_as_rate(M metric) {
  return metric == M::kPromptTokens || metric == M::kGenerationTokens || metric == M::kRequests;
}

bool same_counters(const ServerSample& a, const ServerSample& b) {
  for (size_t i = 0; i < kServerMetrics; ++i) {
    if (server_metric_info(static_cast<M>(i)).counter && a.values[i] != b.values[i]) return false;
  }
  return true;
}

}  // namespace

ServerScraper::ServerScraper(Fetch fetch) : fetch_(std::move(fetch)) {
  for (size_t i = 0; i < kServerMetrics; ++i) {
    const auto metric = static_cast<M>(i);
    const auto& info = server_metric_info(metric);
    if (info.counter && !shown_as_rate(metric)) continue;
    series_[i].emplace(fmt::format("server.{}{}", info.name, info.counter ? "_rate" : ""),
                       info.counter ? fmt::format("{}/s", info.unit) : info.unit, "/metrics");
  }
}

Result<void> ServerScraper::open() {
  const auto text = fetch_();
  if (!text) return text.error();
  if (!read_server_metrics(parse_metrics_text(text.value()))) {
    return environment_error("found no metric of vLLM, SGLang, llama.cpp or TGI in the answer");
  }
  return {};
}

std::optional<ServerScraper::Point> ServerScraper::read() {
  const Nanos t_begin = core::monotonic_ns();
  const auto text = fetch_();
  const Nanos took = core::monotonic_ns() - t_begin;
  ++scrapes_;
  took_sum_ns_ += took;
  took_max_ns_ = std::max(took_max_ns_, took);
  std::optional<ServerSample> sample;
  if (text.ok()) {
    const auto parsed = parse_metrics_text(text.value());
    bad_lines_ += parsed.bad_lines;
    sample = read_server_metrics(parsed);
  }
  if (!sample) {
    if (failed_++ == 0) first_error_ = text ? "no metric that is known" : text.error().message;
    return std::nullopt;
  }
  return Point{t_begin + took / 2, *sample};
}

std::optional<ServerScraper::Point> ServerScraper::read_settled() {
  core::MonotonicClock clock;
  const Nanos t_give_up = core::monotonic_ns() + kSettleMax;
  auto point = read();
  while (core::monotonic_ns() < t_give_up) {
    clock.sleep_until(core::monotonic_ns() + kSettlePause);
    auto next = read();
    const bool settled = point && next && same_counters(point->sample, next->sample);
    if (next) point = std::move(next);
    if (settled) break;
  }
  return point;
}

void ServerScraper::begin(bool quiet) {
  begin_ = quiet ? read() : read_settled();
  if (begin_) add_to_series(*begin_);
}

void ServerScraper::scrape() {
  if (const auto point = read()) add_to_series(*point);
}

void ServerScraper::end() {
  end_ = read_settled();
  if (end_) add_to_series(*end_);
}

void ServerScraper::add_to_series(const Point& point) {
  for (size_t i = 0; i < kServerMetrics; ++i) {
    const auto& value = point.sample.values[i];
    if (!series_[i] || !value) continue;
    if (!server_metric_info(static_cast<M>(i)).counter) {
      series_[i]->add(point.t_ns, *value);
    } else if (last_ && last_->sample.values[i] && point.t_ns > last_->t_ns) {
      // A counter that fell was reset: no rate for that interval.
      const double gained = *value - *last_->sample.values[i];
      if (gained >= 0) {
        series_[i]->add(point.t_ns, gained / (static_cast<double>(point.t_ns - last_->t_ns) / 1e9));
      }
    }
  }
  last_ = point;
}

std::optional<ServerDifferences> ServerScraper::differences() const {
  if (!begin_ || !end_) return std::nullopt;
  ServerDifferences out;
  out.names = end_->sample.names;
  out.t_begin_ns = begin_->t_ns;
  out.t_end_ns = end_->t_ns;
  out.running_at_begin =
      begin_->sample[M::kRunning].value_or(0) + begin_->sample[M::kWaiting].value_or(0);
  for (size_t i = 0; i < kServerMetrics; ++i) {
    const auto& after = end_->sample.values[i];
    if (!server_metric_info(static_cast<M>(i)).counter || !after) continue;
    // A counter that appears during the run (labels of its first event) began at 0.
    const double gained = *after - begin_->sample.values[i].value_or(0);
    out.restarted = out.restarted || gained < 0;
    out.gained[i] = gained;
  }
  if (out.restarted) out.gained = {};
  return out;
}

std::vector<Json> ServerScraper::series_json() const {
  std::vector<Json> out;
  for (const auto& series : series_) {
    if (series && series->count() > 0) out.push_back(series->to_json());
  }
  return out;
}

Json ServerScraper::summary_json() const {
  Json json = Json::object();
  json["names"] = last_ ? std::string(last_->sample.names) : "";
  json["scrapes"] = scrapes_;
  json["failed_scrapes"] = failed_;
  json["scrape_ms_mean"] =
      scrapes_ == 0 ? Json() : Json(core::to_ms(took_sum_ns_) / static_cast<double>(scrapes_));
  json["scrape_ms_max"] = core::to_ms(took_max_ns_);
  json["bad_lines"] = bad_lines_;
  return json;
}

}  // namespace prony::telemetry
