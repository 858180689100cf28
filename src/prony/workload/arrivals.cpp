#include "prony/workload/arrivals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/core/check.hpp"
#include "prony/core/clock.hpp"
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

std::string describe(const ArrivalOptions& options) {
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
      rng_(rng) {}

int64_t ArrivalProcess::next_ns() {
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
  // 2^62 is far beyond any schedule; the caller refuses it, the conversion must only be defined.
  constexpr double kLatest = 0x1p62;
  return static_cast<int64_t>(std::floor(std::min(sum_ns_, kLatest) + 0.5));
}

}  // namespace prony::workload
