#include "prony/load/bench_options.hpp"

#include <fmt/format.h>

#include <memory>

#include "prony/load/bench_schedule.hpp"

namespace prony::load {
namespace {

constexpr int64_t kDefaultConcurrency = 8;
Error out_of_range(const char* flag, double found, const char* expected) {
  return invalid_argument(fmt::format("{}: found {:g}, expected {}", flag, found, expected));
}

Result<void> check_counts(const BenchOptions& options) {
  if (options.num_prompts && *options.num_prompts < 1) {
    return out_of_range("--num-prompts", static_cast<double>(*options.num_prompts), "1 or more");
  }
  if (options.max_concurrency && *options.max_concurrency < 1) {
    return out_of_range("--max-concurrency", static_cast<double>(*options.max_concurrency),
                        "1 or more");
  }
  if (options.duration_s && !(*options.duration_s > 0 && *options.duration_s <= 1e7)) {
    return out_of_range("--duration", *options.duration_s, "seconds, more than 0");
  }
  return {};
}

}  // namespace

Result<LoadShape> load_shape(const BenchOptions& options) {
  if (auto checked = check_counts(options); !checked) return checked.error();
  LoadShape shape;
  shape.max_concurrency = options.max_concurrency;
  if (options.dataset == "schedule") {  // brings its own arrivals
    if (options.request_rate) {
      return invalid_argument(
          "--request-rate: not with --dataset schedule, which has its own times");
    }
    const auto& more = options.workload;
    if (more.stages || more.on_off || more.diurnal || more.ramp_strategy || more.turns ||
        more.think_time || more.num_sessions) {
      return invalid_argument(
          "--dataset schedule: has its own times and conversations, expected no flags for them");
    }
    return shape;
  }
  auto curve = rate_curve(options);
  if (!curve) return curve.error();
  auto ramp = index_ramp(options);
  if (!ramp) return ramp.error();
  if (curve.value()) {
    shape.curve = curve.value()->name();
    shape.rate_per_s = curve.value()->mean_per_s();
    return shape;
  }
  if (ramp.value()) {
    shape.curve = "ramp";
    shape.rate_per_s = (ramp.value()->start_per_s + ramp.value()->end_per_s) / 2;
    return shape;
  }
  if (!options.request_rate) {
    shape.trace_times = has_own_times(options) && !options.max_concurrency;
    shape.closed_loop = !shape.trace_times;
    if (shape.closed_loop && !shape.max_concurrency) shape.max_concurrency = kDefaultConcurrency;
    return shape;
  }
  auto arrivals = workload::arrivals_from_flags(*options.request_rate, options.burstiness);
  if (!arrivals) return arrivals.error();
  if (arrivals.value().kind == workload::ArrivalKind::kAtOnce) {
    shape.closed_loop = shape.max_concurrency.has_value();
    shape.at_once = !shape.closed_loop;
  } else {
    shape.rate_per_s = arrivals.value().rate_per_s;
  }
  return shape;
}

Result<BodyOptions> make_body_options(const BenchOptions& options, const Dialect& dialect,
                                      const std::string& model, bool counts_every_chunk) {
  if (auto checked = check_extra_body(options.extra_body, "--extra-body"); !checked) {
    return checked.error();
  }
  if (options.prompt_format == "ids" && !dialect.info().takes_token_ids) {
    return invalid_argument(
        fmt::format("--prompt-format ids: {} takes text only", dialect.info().name));
  }
  if (options.ignore_eos && !dialect.info().ignores_eos) {
    return invalid_argument(
        fmt::format("--ignore-eos: {} has no such option", dialect.info().name));
  }
  BodyOptions body;
  body.model = model;
  body.ignore_eos = options.ignore_eos;
  body.temperature = options.temperature;
  body.extra = options.extra_body;
  const bool continuous = counts_every_chunk && dialect.info().continuous_usage;
  if (options.usage == "auto") {
    body.usage = continuous ? UsageRequest::kContinuous : UsageRequest::kFinal;
  } else if (options.usage == "none") {
    body.usage = UsageRequest::kNone;
  } else if (options.usage == "continuous") {
    body.usage = UsageRequest::kContinuous;
  } else if (options.usage == "token-ids") {
    body.usage = UsageRequest::kTokenIds;
  }
  return body;
}

const char* usage_name(UsageRequest usage) {
  switch (usage) {
    case UsageRequest::kNone:
      return "none";
    case UsageRequest::kFinal:
      return "final";
    case UsageRequest::kContinuous:
      return "continuous";
    case UsageRequest::kTokenIds:
      return "token-ids";
  }
  return "";
}

}  // namespace prony::load
