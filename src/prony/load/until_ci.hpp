// --until-ci: a run goes on until one metric is known well enough, its 95 % interval within a
// share of the metric itself. PrecisionWatch sees every request as it ends and looks at the
// interval when so many have ended, then twice as many, and so on: each look is a chance to stop
// by luck on an interval that is too narrow, and doubling keeps the looks few. (Measured on
// exponential latencies, goal 5 %: the interval at the stop held the true median in 382 of 400.)
// Requests are taken in the order in which they end; intervals allow for neighbours that resemble
// each other (stats/batch_ratio.hpp).
// Source: Chow & Robbins, Annals of Mathematical Statistics 36(2), 1965 (stopping at a given
// width); Law & Kelton, Management Science 30(4), 1984 (looks at growing sizes).
// Thread safety: add() any thread; the rest one thread.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/core/slo.hpp"
#include "prony/record/request_row.hpp"
#include "prony/stats/batch_ratio.hpp"

namespace prony::load {

struct UntilCi {
  core::SloMetric metric = core::SloMetric::kTtft;
  core::SloStatistic statistic = core::SloStatistic::kP50;
  double half_width = 0.02;  // of the interval, relative to the metric
  bool operator==(const UntilCi&) const = default;
};
/// "2%", "0.02", "ttft_p99=2%", "output_throughput=1%". Latencies of whole requests with mean or a
/// percentile, request_throughput, output_throughput. Error: kInvalidArgument naming `flag`.
Result<UntilCi> parse_until_ci(std::string_view text, std::string_view flag = "--until-ci");
/// "ttft_p50"
std::string until_ci_metric(const UntilCi& goal);

class PrecisionWatch {
 public:
  explicit PrecisionWatch(const UntilCi& goal);

  /// A request ended. Failed ones do not count.
  void add(const record::RequestRow& row);
  /// Looks if it is time to; true if the goal is reached, then and ever after.
  bool enough();
  /// Looks now, whatever the size: the run is over.
  void look();

  struct Outcome {
    bool reached = false;
    int64_t n = 0;  // completed requests at the last look
    int64_t looks = 0;
    std::optional<double> value;
    std::optional<stats::Interval> interval;
    std::optional<double> half_width;  // relative
  };
  const Outcome& outcome() const { return outcome_; }
  core::Json to_json() const;
  /// One line for people.
  std::string text() const;

 private:
  struct Ended {
    core::Nanos t_ns;
    double value;  // ms, or tokens
  };
  void take_ended();

  UntilCi goal_;
  int64_t next_look_;
  std::mutex mutex_;
  std::vector<Ended> ended_;  // since the last take; under mutex_
  std::vector<double> values_;
  stats::BatchRatio series_;
  std::optional<core::Nanos> t_last_ns_;
  int64_t n_ = 0;
  Outcome outcome_;
};

}  // namespace prony::load
