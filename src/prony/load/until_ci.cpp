#include "prony/load/until_ci.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "prony/core/check.hpp"
#include "prony/record/latency_collector.hpp"
#include "prony/record/row_metrics.hpp"

namespace prony::load {
namespace {

using core::SloMetric;
using core::SloStatistic;

/// Fewer requests than this say little about their own spread.
constexpr int64_t kFirstLook = 64;

struct Level {
  SloStatistic statistic;
  double q;  // 0: the mean
};
constexpr std::array kLevels = {
    Level{SloStatistic::kMean, 0},     Level{SloStatistic::kP50, 0.5},
    Level{SloStatistic::kP75, 0.75},   Level{SloStatistic::kP90, 0.9},
    Level{SloStatistic::kP95, 0.95},   Level{SloStatistic::kP99, 0.99},
    Level{SloStatistic::kP999, 0.999}, Level{SloStatistic::kP9999, 0.9999}};
constexpr std::array kLatencies = {SloMetric::kTtft, SloMetric::kTpot, SloMetric::kE2e,
                                   SloMetric::kTtftIntended, SloMetric::kE2eIntended};
constexpr std::array kRates = {SloMetric::kRequestThroughput, SloMetric::kOutputThroughput};

double level_of(SloStatistic statistic) {
  for (const auto& level : kLevels) {
    if (level.statistic == statistic) return level.q;
  }
  return 0;
}

bool is_rate(const UntilCi& goal) {
  return goal.statistic == SloStatistic::kNone;
}

std::optional<UntilCi> metric_named(std::string_view name) {
  UntilCi goal;
  for (const auto metric : kRates) {
    goal.metric = metric;
    goal.statistic = SloStatistic::kNone;
    if (name == core::slo_metric_name(metric)) return goal;
  }
  for (const auto metric : kLatencies) {
    for (const auto& level : kLevels) {
      goal.metric = metric;
      goal.statistic = level.statistic;
      if (name == until_ci_metric(goal)) return goal;
    }
  }
  return std::nullopt;
}

std::optional<double> value_of(const UntilCi& goal, const record::RequestRow& row) {
  switch (goal.metric) {
    case SloMetric::kTtft:
      return record::ttft_ms(row);
    case SloMetric::kTpot:
      return record::tpot_ms(row);
    case SloMetric::kE2e:
      return record::e2e_ms(row);
    case SloMetric::kTtftIntended:
      return record::ttft_intended_ms(row);
    case SloMetric::kE2eIntended:
      return record::e2e_intended_ms(row);
    case SloMetric::kRequestThroughput:
      return 1;
    case SloMetric::kOutputThroughput:
      return record::tokens_of(row);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string until_ci_metric(const UntilCi& goal) {
  std::string name = core::slo_metric_name(goal.metric);
  if (!is_rate(goal)) name += std::string("_") + core::slo_statistic_name(goal.statistic);
  return name;
}

Result<UntilCi> parse_until_ci(std::string_view text, std::string_view flag) {
  const auto error = [&](std::string_view expected) {
    return invalid_argument(fmt::format("{}: found '{}', expected {}", flag, text, expected));
  };
  UntilCi goal;
  auto share = text;
  if (const auto at = text.find('='); at != std::string_view::npos) {
    const auto named = metric_named(text.substr(0, at));
    if (!named) {
      return error(
          "METRIC=SHARE with ttft, tpot, e2e, ttft_intended or e2e_intended and _mean or _p50 to "
          "_p9999, request_throughput or output_throughput");
    }
    goal = *named;
    share = text.substr(at + 1);
  }
  const bool percent = share.ends_with('%');
  if (percent) share.remove_suffix(1);
  double number = 0;
  const auto [end, code] = std::from_chars(share.data(), share.data() + share.size(), number);
  if (code != std::errc() || end != share.data() + share.size()) return error("a share like 2%");
  goal.half_width = percent ? number / 100 : number;
  if (!(goal.half_width >= 1e-4 && goal.half_width <= 1)) return error("a share of 0.01% to 100%");
  return goal;
}

PrecisionWatch::PrecisionWatch(const UntilCi& goal) : goal_(goal), next_look_(kFirstLook) {
  if (!is_rate(goal)) {
    next_look_ = std::max(next_look_, record::samples_needed(level_of(goal.statistic)));
  }
}

void PrecisionWatch::add(const record::RequestRow& row) {
  if (row.status != record::Status::kOk || !row.t_last_token_ns) return;
  const auto value = value_of(goal_, row);
  if (!value) return;
  const std::lock_guard lock(mutex_);
  ended_.push_back({*row.t_last_token_ns, *value});
}

void PrecisionWatch::take_ended() {
  std::vector<Ended> ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(ended_);
  }
  // Several loops hand in their requests, each in order.
  std::sort(ended.begin(), ended.end(),
            [](const Ended& a, const Ended& b) { return a.t_ns < b.t_ns; });
  for (const auto& one : ended) {
    ++n_;
    if (!is_rate(goal_)) {
      if (goal_.statistic == SloStatistic::kMean) {
        series_.add(one.value);
      } else {
        values_.push_back(one.value);
      }
      continue;
    }
    // What came in the time since the one before; the first has none before it.
    if (t_last_ns_) {
      const auto gap_ns = std::max<core::Nanos>(0, one.t_ns - *t_last_ns_);
      series_.add(one.value, static_cast<double>(gap_ns) / 1e9);
    }
    t_last_ns_ = std::max(one.t_ns, t_last_ns_.value_or(one.t_ns));
  }
}

bool PrecisionWatch::enough() {
  if (outcome_.reached) return true;
  take_ended();
  if (n_ < next_look_) return false;
  next_look_ = 2 * n_;
  look();
  return outcome_.reached;
}

void PrecisionWatch::look() {
  take_ended();
  if (outcome_.looks > 0 && outcome_.n == n_) return;  // nothing new
  ++outcome_.looks;
  outcome_.n = n_;
  outcome_.value.reset();
  outcome_.interval.reset();
  outcome_.half_width.reset();
  if (is_rate(goal_) || goal_.statistic == SloStatistic::kMean) {
    outcome_.value = series_.estimate();
    outcome_.interval = series_.interval();
  } else if (n_ >= record::samples_needed(level_of(goal_.statistic))) {
    if (const auto found = stats::series_quantile(values_, level_of(goal_.statistic))) {
      outcome_.value = found->value;
      outcome_.interval = found->interval;
    }
  }
  if (!outcome_.value || !outcome_.interval || !(*outcome_.value > 0)) return;
  outcome_.half_width = (outcome_.interval->upper - outcome_.interval->lower) / 2 / *outcome_.value;
  outcome_.reached = n_ >= kFirstLook && *outcome_.half_width <= goal_.half_width;
}

core::Json PrecisionWatch::to_json() const {
  core::Json out;
  out["metric"] = until_ci_metric(goal_);
  out["half_width_asked"] = goal_.half_width;
  out["reached"] = outcome_.reached;
  out["n"] = outcome_.n;
  out["looks"] = outcome_.looks;
  out["value"] = outcome_.value ? core::Json(*outcome_.value) : core::Json(nullptr);
  out["ci95"] = outcome_.interval
                    ? core::Json::array({outcome_.interval->lower, outcome_.interval->upper})
                    : core::Json(nullptr);
  out["half_width"] = outcome_.half_width ? core::Json(*outcome_.half_width) : core::Json(nullptr);
  return out;
}

std::string PrecisionWatch::text() const {
  const auto asked =
      fmt::format("{} within {:g} %", until_ci_metric(goal_), 100 * goal_.half_width);
  if (!outcome_.half_width) {
    return fmt::format("--until-ci: {}: not reached, {} completed requests give no interval", asked,
                       outcome_.n);
  }
  return fmt::format("--until-ci: {}: {}, {:.3g} % after {} completed requests", asked,
                     outcome_.reached ? "reached" : "not reached", 100 * *outcome_.half_width,
                     outcome_.n);
}

}  // namespace prony::load
