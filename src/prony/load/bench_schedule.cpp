#include "prony/load/bench_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "prony/core/file.hpp"
#include "prony/workload/servegen.hpp"
#include "prony/workload/sharegpt.hpp"
#include "prony/workload/trace_formats.hpp"
#include "prony/workload/trace_table.hpp"

namespace prony::load {
namespace {

constexpr int64_t kDefaultPrompts = 200;
constexpr int64_t kUntilCiPrompts = 10'000;  // most, where --until-ci has no other bound
constexpr double kServeGenSeconds = 600;     // of its time, where no window is given
/// A closed loop with a duration needs a schedule before it knows how fast the server is: so many
/// requests a second for each user are prepared for.
constexpr double kClosedLoopRate = 50;
constexpr int64_t kClosedLoopMax = 2'000'000;

core::Nanos to_nanos(double seconds) {
  return static_cast<core::Nanos>(std::llround(seconds * 1e9));
}

template <class T>
Result<T> with_flag(Result<T> result, std::string_view flag) {
  if (result.ok()) return result;
  return invalid_argument(fmt::format("{}: {}", flag, result.error().message));
}

Result<workload::LengthLaw> parse_length(const std::string& text, double range_ratio,
                                         const char* flag) {
  int32_t tokens = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), tokens);
  const bool plain = code == std::errc() && end == text.data() + text.size();
  if (plain && range_ratio > 0) return workload::LengthLaw::random_range(tokens, range_ratio);
  return workload::LengthLaw::parse(text, flag);
}

Result<workload::Trace> read_servegen(const BenchOptions& options) {
  constexpr std::string_view kArrivals = "_arrivals", kLengths = "_lengths";
  const auto& path = options.dataset_path;
  const auto at = path.rfind(kArrivals);
  if (at == std::string::npos) {
    return invalid_argument(fmt::format(
        "--dataset-path: found '{}', expected a file ..._arrivals.csv with ..._lengths.csv beside",
        path));
  }
  auto lengths_path = path;
  lengths_path.replace(at, kArrivals.size(), kLengths);
  auto arrivals = core::read_file(path);
  if (!arrivals) return arrivals.error();
  auto lengths = core::read_file(lengths_path);
  if (!lengths) return lengths.error();
  auto mix = workload::parse_servegen(*arrivals, path, *lengths, lengths_path);
  if (!mix) return mix.error();
  const double seconds = options.trace_length_s > 0 ? options.trace_length_s : kServeGenSeconds;
  return workload::draw_servegen(*mix, options.seed, options.trace_start_s, seconds);
}

Result<workload::Trace> read_trace(const BenchOptions& options) {
  const auto& path = options.dataset_path;
  if (path.empty()) {
    return invalid_argument(
        fmt::format("--dataset-path: missing, expected the file of --dataset {}", options.dataset));
  }
  if (options.dataset == "servegen") return read_servegen(options);
  workload::ColumnMap columns;
  const bool own = options.dataset == "csv" || options.dataset == "jsonl";
  if (own) {
    auto parsed = workload::parse_column_map(options.workload.columns);
    if (!parsed) return parsed.error();
    columns = std::move(parsed).value();
  }
  auto content = core::read_file(path);
  if (!content) return content.error();
  if (options.dataset == "azure") return workload::parse_azure_trace(*content, path);
  if (options.dataset == "mooncake") return workload::parse_mooncake_trace(*content, path);
  if (options.dataset == "burstgpt") return workload::parse_burstgpt_trace(*content, path);
  if (options.dataset == "csv") return workload::parse_csv_trace(*content, path, columns);
  if (options.dataset == "jsonl") return workload::parse_jsonl_trace(*content, path, columns);
  return workload::parse_sharegpt(*content, path, options.workload.count_tokens);
}

Result<void> set_trace_lengths(const BenchOptions& options, workload::LengthOptions& lengths) {
  using Kind = workload::LengthOptions::Kind;
  const auto& from = options.workload;
  auto trace = read_trace(options);
  if (!trace) return trace.error();
  lengths.trace = std::make_shared<const workload::Trace>(std::move(trace).value());
  lengths.kind = Kind::kTraceInOrder;
  if (options.shuffle_lengths || from.lengths == "resample") lengths.kind = Kind::kTraceResample;
  if (from.lengths == "kde") lengths.kind = Kind::kTraceKde;
  if (from.lengths == "kde-pairs") lengths.kind = Kind::kTraceKdePairs;
  double bandwidth = 0;
  if (from.bandwidth != "silverman") {
    const auto& text = from.bandwidth;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), bandwidth);
    if (code != std::errc() || end != text.data() + text.size() || !(bandwidth > 0) ||
        !std::isfinite(bandwidth)) {
      return invalid_argument(
          fmt::format("--kde-bandwidth: found '{}', expected silverman or a number > 0", text));
    }
  }
  lengths.input_kde = lengths.output_kde = {bandwidth, from.kde_log, 1};
  return {};
}

Result<void> set_law_lengths(const BenchOptions& options, workload::LengthOptions& lengths) {
  auto input = parse_length(options.input_len, options.range_ratio, "--input-len");
  if (!input) return input.error();
  auto output = parse_length(options.output_len, options.range_ratio, "--output-len");
  if (!output) return output.error();
  lengths.input = std::move(input).value();
  lengths.output = std::move(output).value();
  return {};
}

Result<void> set_sessions(const BenchOptions& options, workload::SessionOptions& sessions) {
  const auto& from = options.workload;
  if (from.turns) {
    auto turns = workload::LengthLaw::parse(*from.turns, "--turns");
    if (!turns) return turns.error();
    sessions.turns = std::move(turns).value();
  }
  if (from.think_time) {
    auto think = workload::TimeLaw::parse(*from.think_time, "--think-time");
    if (!think) return think.error();
    sessions.think = std::move(think).value();
  }
  if (from.num_sessions) {
    if (*from.num_sessions < 1 || *from.num_sessions > workload::kScheduleEntriesMax) {
      return invalid_argument(
          fmt::format("--num-sessions: found {}, expected 1 or more", *from.num_sessions));
    }
    sessions.count = *from.num_sessions;
  }
  return {};
}

Result<void> set_arrivals(const BenchOptions& options, const LoadShape& shape,
                          workload::ArrivalOptions& arrivals) {
  auto curve = rate_curve(options);
  if (!curve) return curve.error();
  auto ramp = index_ramp(options);
  if (!ramp) return ramp.error();
  if (curve.value() || ramp.value()) {
    auto law = workload::arrivals_from_flags("1", options.burstiness);
    if (!law) return law.error();
    arrivals = std::move(law).value();
    arrivals.curve = std::move(curve).value();
    arrivals.ramp = ramp.value();
  } else if (options.request_rate) {
    auto parsed = workload::arrivals_from_flags(*options.request_rate, options.burstiness);
    if (!parsed) return parsed.error();
    arrivals = std::move(parsed).value();
  } else {
    arrivals.kind =
        shape.trace_times ? workload::ArrivalKind::kTrace : workload::ArrivalKind::kAtOnce;
  }
  return {};
}

int64_t default_count(const BenchOptions& options, const LoadShape& shape) {
  if (!(shape.closed_loop && options.duration_s)) {
    return options.until_ci ? kUntilCiPrompts : kDefaultPrompts;
  }
  const double expected =
      static_cast<double>(*shape.max_concurrency) * *options.duration_s * kClosedLoopRate;
  return std::clamp(static_cast<int64_t>(expected), int64_t{1000}, kClosedLoopMax);
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

Result<double> plain_rate(const BenchOptions& options, const char* flag) {
  if (!options.request_rate) {
    return invalid_argument(fmt::format("{}: expected --request-rate with it", flag));
  }
  auto parsed = workload::arrivals_from_flags(*options.request_rate);
  if (!parsed) return parsed.error();
  if (parsed.value().kind == workload::ArrivalKind::kAtOnce) {
    return invalid_argument(fmt::format("{}: found a rate of inf, expected a number", flag));
  }
  return parsed.value().rate_per_s;
}

}  // namespace

bool is_trace(const BenchOptions& options) {
  return options.dataset != "random" && options.dataset != "schedule";
}

bool has_own_times(const BenchOptions& options) {
  if (options.dataset == "csv" || options.dataset == "jsonl") {
    const auto columns = workload::parse_column_map(options.workload.columns);
    return columns.ok() && !columns.value().time.empty();
  }
  return is_trace(options) && options.dataset != "sharegpt";
}

Result<std::shared_ptr<const workload::RateCurve>> rate_curve(const BenchOptions& options) {
  using workload::RateCurve;
  const auto& from = options.workload;
  const bool ramp = from.ramp_strategy && options.duration_s;
  const int given = (from.stages ? 1 : 0) + (from.on_off ? 1 : 0) + (from.diurnal ? 1 : 0) +
                    (from.ramp_strategy ? 1 : 0);
  if (given > 1) {
    return invalid_argument(
        "--stages, --on-off, --diurnal, --ramp-up-strategy: found several, expected one");
  }
  if ((from.stages || from.ramp_strategy) && options.request_rate) {
    return invalid_argument(fmt::format("{}: not with --request-rate, it says the rates itself",
                                        from.stages ? "--stages" : "--ramp-up-strategy"));
  }
  if (!from.ramp_strategy && (from.ramp_start_rps || from.ramp_end_rps)) {
    return invalid_argument("--ramp-up-start-rps, --ramp-up-end-rps: expected --ramp-up-strategy");
  }
  if (from.ramp_strategy && (!from.ramp_start_rps || !from.ramp_end_rps)) {
    return invalid_argument(
        "--ramp-up-strategy: expected --ramp-up-start-rps and --ramp-up-end-rps with it");
  }
  std::optional<Result<RateCurve>> made;
  if (from.stages) made = RateCurve::stages(*from.stages);
  if (from.on_off) {
    const auto rate = plain_rate(options, "--on-off");
    if (!rate) return rate.error();
    made = RateCurve::on_off(*rate, *from.on_off);
  }
  if (from.diurnal) {
    const auto rate = plain_rate(options, "--diurnal");
    if (!rate) return rate.error();
    made = RateCurve::diurnal(*rate, *from.diurnal);
  }
  if (ramp) {
    made = with_flag(RateCurve::ramp(*from.ramp_start_rps, *from.ramp_end_rps, *options.duration_s,
                                     *from.ramp_strategy),
                     "--ramp-up-strategy");
  }
  if (!made) return std::shared_ptr<const RateCurve>();
  if (!made->ok()) return made->error();
  return std::make_shared<const RateCurve>(std::move(*made).value());
}

Result<std::optional<workload::IndexRamp>> index_ramp(const BenchOptions& options) {
  const auto& from = options.workload;
  if (!from.ramp_strategy || options.duration_s) return std::optional<workload::IndexRamp>();
  for (const double rate : {*from.ramp_start_rps, *from.ramp_end_rps}) {
    if (rate > 0 && std::isfinite(rate)) continue;
    return invalid_argument(fmt::format(
        "--ramp-up-start-rps, --ramp-up-end-rps: found {:g}, expected requests/s > 0", rate));
  }
  return std::optional(workload::IndexRamp{*from.ramp_start_rps, *from.ramp_end_rps,
                                           *from.ramp_strategy == "exponential",
                                           options.num_prompts.value_or(kDefaultPrompts)});
}

Result<workload::ScheduleOptions> make_schedule_options(const BenchOptions& options,
                                                        const LoadShape& shape) {
  workload::ScheduleOptions wanted;
  wanted.seed = options.seed;
  wanted.count = options.num_prompts.value_or(0);
  wanted.scale = options.scale;
  const bool own_times = !shape.closed_loop && !shape.at_once;
  if (own_times && options.duration_s) wanted.duration_ns = to_nanos(*options.duration_s);
  if (auto set = set_sessions(options, wanted.sessions); !set) return set.error();
  if (auto set = set_arrivals(options, shape, wanted.arrivals); !set) return set.error();
  const auto& curve = wanted.arrivals.curve;
  const bool bounded =
      own_times && (options.duration_s || shape.trace_times || (curve && !curve->repeats()));
  if (!options.num_prompts && !options.workload.num_sessions && !bounded) {
    wanted.count = default_count(options, shape);
  }
  auto set = is_trace(options) ? set_trace_lengths(options, wanted.lengths)
                               : set_law_lengths(options, wanted.lengths);
  if (!set) return set.error();
  if (options.prefix_len > 0) {
    if (options.prefix_len > workload::kTokensMax || options.prefix_groups < 1 ||
        options.prefix_groups > 1'000'000) {
      return invalid_argument("--random-prefix-len, --prefix-groups: out of range");
    }
    wanted.prefix.tokens = static_cast<int32_t>(options.prefix_len);
    wanted.prefix.groups = static_cast<int32_t>(options.prefix_groups);
    wanted.prefix.zipf = options.workload.prefix_zipf;
  }
  if (is_trace(options)) {
    auto& arrivals = wanted.arrivals;
    arrivals.trace = wanted.lengths.trace;
    arrivals.time_scale = options.time_scale;
    if (options.dataset != "servegen") {  // whose window was drawn
      arrivals.window_start_ns = to_nanos(options.trace_start_s);
      arrivals.window_length_ns = to_nanos(options.trace_length_s);
    }
  }
  const auto& sessions = wanted.sessions;
  const bool talks =
      sessions.turns || (wanted.lengths.trace && wanted.lengths.trace->has_sessions());
  if (!talks && (sessions.think || sessions.count > 0)) {
    return invalid_argument(
        fmt::format("{}: expected --turns or a dataset of conversations with it",
                    sessions.think ? "--think-time" : "--num-sessions"));
  }
  return wanted;
}

Result<workload::Schedule> make_schedule(const BenchOptions& options, const LoadShape& shape) {
  if (options.dataset == "schedule") return read_given_schedule(options);
  const auto wanted = make_schedule_options(options, shape);
  if (!wanted) return wanted.error();
  return workload::generate_schedule(*wanted);
}

}  // namespace prony::load
