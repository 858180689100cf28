#include "prony/workload/arrivals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/core/check.hpp"
#include "prony/core/clock.hpp"
#include "prony/core/math.hpp"
#include "prony/token/quote.hpp"
#include "prony/workload/numbers.hpp"

namespace prony::workload {
namespace {

constexpr double kNanosPerSecond = 1e9;

bool is_positive(double x) {
  return x > 0 && std::isfinite(x);
}

}  // namespace

Result<ArrivalOptions> arrivals_from_flags(std::string_view request_rate, double burstiness) {
  ArrivalOptions options;
  const auto rate = parse_number<double>(request_rate);
  if (!rate || !(*rate > 0)) {
    return invalid_argument(fmt::format("--request-rate: found {}, expected requests/s > 0 or inf",
                                        token::quote(request_rate)));
  }
  if (!(burstiness > 0)) {
    return invalid_argument(fmt::format("--burstiness: found {}, expected > 0", burstiness));
  }
  if (std::isinf(*rate)) {
    options.kind = ArrivalKind::kAtOnce;
    return options;
  }
  options.rate_per_s = *rate;
  if (std::isinf(burstiness)) {
    options.kind = ArrivalKind::kConstant;
  } else if (burstiness != 1) {
    options.kind = ArrivalKind::kGamma;
    options.burstiness = burstiness;
  }
  return options;
}

double IndexRamp::rate(int64_t index) const {
  const double progress =
      count > 1 ? static_cast<double>(index) / static_cast<double>(count - 1) : 0;
  if (!exponential) return start_per_s + (end_per_s - start_per_s) * progress;
  return start_per_s * core::math::pow(end_per_s / start_per_s, progress);
}

std::string describe(const ArrivalOptions& options) {
  if (options.curve || options.ramp) {
    std::string law = "Poisson";
    if (options.kind == ArrivalKind::kConstant) law = "evenly spaced";
    if (options.kind == ArrivalKind::kGamma) {
      law = fmt::format("gamma (burstiness {})", options.burstiness);
    }
    if (options.curve) return fmt::format("{} arrivals, {}", law, options.curve->describe());
    return fmt::format("{} arrivals, ramp {} over the requests from {}/s to {}/s", law,
                       options.ramp->exponential ? "exponential" : "linear",
                       options.ramp->start_per_s, options.ramp->end_per_s);
  }
  switch (options.kind) {
    case ArrivalKind::kConstant:
      return fmt::format("constant arrivals at {} requests/s", options.rate_per_s);
    case ArrivalKind::kPoisson:
      return fmt::format("Poisson arrivals at {} requests/s", options.rate_per_s);
    case ArrivalKind::kGamma:
      return fmt::format("gamma arrivals at {} requests/s, burstiness {}", options.rate_per_s,
                         options.burstiness);
    case ArrivalKind::kAtOnce:
      return "all requests at once";
    case ArrivalKind::kTrace:
      break;
  }
  std::string text =
      fmt::format("arrivals of trace {}", options.trace ? options.trace->name : "(none)");
  const auto seconds = [](int64_t ns) {
    return static_cast<double>(ns) / static_cast<double>(core::kNanosPerSecond);
  };
  if (options.window_length_ns > 0) {
    text += fmt::format(", {} s from second {}", seconds(options.window_length_ns),
                        seconds(options.window_start_ns));
  } else if (options.window_start_ns > 0) {
    text += fmt::format(" from second {}", seconds(options.window_start_ns));
  }
  if (options.time_scale != 1) text += fmt::format(", time x{}", options.time_scale);
  if (options.trace && options.trace->moved_rows > 0) {
    text += fmt::format(", {} rows put in order", options.trace->moved_rows);
  }
  return text;
}

Result<ArrivalProcess> ArrivalProcess::create(const ArrivalOptions& options, core::Rng rng) {
  if (options.kind == ArrivalKind::kTrace) {
    return invalid_argument("arrivals: found a trace, expected a process with a rate");
  }
  if (options.kind != ArrivalKind::kAtOnce && !is_positive(options.rate_per_s)) {
    return invalid_argument(
        fmt::format("arrival rate: found {}, expected requests/s > 0", options.rate_per_s));
  }
  if ((options.curve || options.ramp) && options.kind == ArrivalKind::kAtOnce) {
    return invalid_argument("arrivals: found a rate that changes and a rate of inf");
  }
  if (const auto& ramp = options.ramp;
      ramp && (options.curve || ramp->count < 1 || !is_positive(ramp->start_per_s) ||
               !is_positive(ramp->end_per_s))) {
    return invalid_argument(
        fmt::format("ramp: found {}/s to {}/s over {} requests, expected all > 0 and no curve",
                    ramp->start_per_s, ramp->end_per_s, ramp->count));
  }
  if (options.kind == ArrivalKind::kGamma && !is_positive(options.burstiness)) {
    return invalid_argument(
        fmt::format("burstiness: found {}, expected a number > 0", options.burstiness));
  }
  return ArrivalProcess(options, rng);
}

ArrivalProcess::ArrivalProcess(const ArrivalOptions& options, core::Rng rng)
    : kind_(options.kind),
      gap_ns_(kNanosPerSecond / options.rate_per_s),
      burstiness_(options.burstiness),
      rng_(rng),
      curve_(options.curve),
      ramp_(options.ramp) {}

double ArrivalProcess::unit_gap() {
  switch (kind_) {
    case ArrivalKind::kPoisson:
      return rng_.exponential();
    case ArrivalKind::kGamma:
      return rng_.gamma(burstiness_) / burstiness_;
    default:
      return 1;
  }
}

int64_t ArrivalProcess::next_ns() {
  // 2^62 is far beyond any schedule; the caller refuses it, the conversion must only be defined.
  const auto whole_ns = [](double ns) {
    return static_cast<int64_t>(std::floor(std::min(ns, static_cast<double>(kNeverNs)) + 0.5));
  };
  if (curve_) {
    events_ += unit_gap();
    return whole_ns(curve_->instant(events_) * kNanosPerSecond);
  }
  if (ramp_) {
    sum_ns_ += unit_gap() * (kNanosPerSecond / ramp_->rate(std::min(drawn_, ramp_->count - 1)));
    ++drawn_;
    return whole_ns(sum_ns_);
  }
  switch (kind_) {
    case ArrivalKind::kConstant:
      // A product, not a sum: one rounding, so the millionth arrival is as exact as the first.
      sum_ns_ = static_cast<double>(++drawn_) * gap_ns_;
      break;
    case ArrivalKind::kPoisson:
      sum_ns_ += rng_.exponential() * gap_ns_;
      break;
    case ArrivalKind::kGamma:
      sum_ns_ += rng_.gamma(burstiness_) / burstiness_ * gap_ns_;
      break;
    case ArrivalKind::kAtOnce:
      return 0;
    case ArrivalKind::kTrace:
      PRONY_CHECK(false, "create() refuses traces");
  }
  return whole_ns(sum_ns_);
}

}  // namespace prony::workload
