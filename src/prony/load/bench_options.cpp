#include "prony/load/bench_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

namespace prony::load {
namespace {

constexpr int64_t kDefaultConcurrency = 8;
constexpr int64_t kDefaultPrompts = 200;
constexpr int64_t kUntilCiPrompts = 10'000;  // most, where --until-ci has no other bound
/// A closed loop with a duration needs a schedule before it knows how fast the server is: so many
/// requests a second for each user are prepared for.
constexpr double kClosedLoopRate = 50;
constexpr int64_t kClosedLoopMax = 2'000'000;

core::Nanos to_nanos(double seconds) {
  return static_cast<core::Nanos>(std::llround(seconds * 1e9));
}

Error out_of_range(const char* flag, double found, const char* expected) {
  return invalid_argument(fmt::format("{}: found {:g}, expected {}", flag, found, expected));
}

bool is_trace(const BenchOptions& options) {
  return options.dataset == "azure";
}

Result<workload::LengthLaw> parse_length(const std::string& text, double range_ratio,
                                         const char* flag) {
  int32_t tokens = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), tokens);
  const bool plain = code == std::errc() && end == text.data() + text.size();
  if (plain && range_ratio > 0) return workload::LengthLaw::random_range(tokens, range_ratio);
  return workload::LengthLaw::parse(text, flag);
}

Result<workload::Schedule> read_given_schedule(const BenchOptions& options) {
  auto schedule = workload::read_schedule(options.dataset_path);
  if (!schedule) return schedule;
  auto& entries = schedule.value().entries;
  if (options.num_prompts && *options.num_prompts < static_cast<int64_t>(entries.size())) {
    entries.resize(static_cast<size_t>(*options.num_prompts));
  }
  if (entries.empty()) {
    return invalid_argument(fmt::format("{}: no requests", options.dataset_path));
  }
  return schedule;
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
    return shape;
  }
  if (!options.request_rate) {
    shape.trace_times = is_trace(options) && !options.max_concurrency;
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

Result<workload::Schedule> make_schedule(const BenchOptions& options, const LoadShape& shape) {
  if (options.dataset == "schedule") return read_given_schedule(options);
  workload::ScheduleOptions wanted;
  wanted.seed = options.seed;
  wanted.count = options.num_prompts.value_or(0);
  const bool own_times = !shape.closed_loop && !shape.at_once;
  if (own_times && options.duration_s) wanted.duration_ns = to_nanos(*options.duration_s);
  if (!options.num_prompts && !(own_times && (options.duration_s || shape.trace_times))) {
    wanted.count = options.until_ci ? kUntilCiPrompts : kDefaultPrompts;
    if (shape.closed_loop && options.duration_s) {
      const double expected =
          static_cast<double>(*shape.max_concurrency) * *options.duration_s * kClosedLoopRate;
      wanted.count = std::clamp(static_cast<int64_t>(expected), int64_t{1000}, kClosedLoopMax);
    }
  }

  if (is_trace(options)) {
    if (options.dataset_path.empty()) {
      return invalid_argument("--dataset-path: missing, expected the CSV file of the trace");
    }
    auto trace = workload::read_azure_trace(options.dataset_path);
    if (!trace) return trace.error();
    wanted.lengths.trace = std::make_shared<const workload::Trace>(std::move(trace).value());
    // Replaying lengths in order wraps around; drawing them does not know order.
    wanted.lengths.kind = options.shuffle_lengths ? workload::LengthOptions::Kind::kTraceResample
                                                  : workload::LengthOptions::Kind::kTraceInOrder;
    wanted.scale = options.scale;
  } else {
    auto input = parse_length(options.input_len, options.range_ratio, "--input-len");
    if (!input) return input.error();
    auto output = parse_length(options.output_len, options.range_ratio, "--output-len");
    if (!output) return output.error();
    wanted.lengths.input = std::move(input).value();
    wanted.lengths.output = std::move(output).value();
    wanted.scale = options.scale;
  }
  if (options.prefix_len > 0) {
    if (options.prefix_len > workload::kTokensMax || options.prefix_groups < 1 ||
        options.prefix_groups > 1'000'000) {
      return invalid_argument("--random-prefix-len, --prefix-groups: out of range");
    }
    wanted.prefix.tokens = static_cast<int32_t>(options.prefix_len);
    wanted.prefix.groups = static_cast<int32_t>(options.prefix_groups);
  }

  auto& arrivals = wanted.arrivals;
  if (options.request_rate) {
    auto parsed = workload::arrivals_from_flags(*options.request_rate, options.burstiness);
    if (!parsed) return parsed.error();
    arrivals = std::move(parsed).value();
  } else {
    arrivals.kind =
        shape.trace_times ? workload::ArrivalKind::kTrace : workload::ArrivalKind::kAtOnce;
  }
  if (is_trace(options)) {
    arrivals.trace = wanted.lengths.trace;
    arrivals.window_start_ns = to_nanos(options.trace_start_s);
    arrivals.window_length_ns = to_nanos(options.trace_length_s);
    arrivals.time_scale = options.time_scale;
  }
  return workload::generate_schedule(wanted);
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
