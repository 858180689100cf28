// generate_schedule(): options to entries. One pass; each entry takes its instant, its lengths and
// its prefix group from streams of their own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "prony/workload/schedule.hpp"
#include "prony/workload/streams.hpp"

namespace prony::workload {
namespace {

// 100 days: instants stay exact in a double, and a mistaken unit is found out.
constexpr int64_t kLatestNs = int64_t{100} * 86'400 * 1'000'000'000;

bool is_positive(double x) {
  return x > 0 && std::isfinite(x);
}

// The rows of `trace` within the window, and the instant where the window starts.
Result<std::span<const TraceRow>> window_of(const std::shared_ptr<const Trace>& trace,
                                            const ArrivalOptions& options) {
  if (!trace || trace->rows.empty()) {
    return invalid_argument("schedule: a trace was asked for, but none with rows was given");
  }
  if (options.window_start_ns < 0 || options.window_length_ns < 0) {
    return invalid_argument(
        fmt::format("trace window: found start {} ns and length {} ns, expected both >= 0",
                    options.window_start_ns, options.window_length_ns));
  }
  const auto at = [&](int64_t t_ns) {
    return std::lower_bound(trace->rows.begin(), trace->rows.end(), t_ns,
                            [](const TraceRow& row, int64_t wanted) { return row.t_ns < wanted; });
  };
  const auto first = at(options.window_start_ns);
  auto last = trace->rows.end();
  if (options.window_length_ns > 0 && options.window_start_ns <= kLatestNs &&
      options.window_length_ns <= kLatestNs) {
    last = at(options.window_start_ns + options.window_length_ns);
  }
  if (first == last) {
    return invalid_argument(
        fmt::format("trace window: no row of {} between second {} and second {}; it spans {} s",
                    trace->name, static_cast<double>(options.window_start_ns) / 1e9,
                    static_cast<double>(options.window_start_ns) / 1e9 +
                        static_cast<double>(options.window_length_ns) / 1e9,
                    static_cast<double>(trace->rows.back().t_ns) / 1e9));
  }
  return std::span<const TraceRow>(first, last);
}

Result<void> check(const ScheduleOptions& options) {
  const LengthScale& scale = options.scale;
  if (options.count < 0 || options.count > kScheduleEntriesMax) {
    return invalid_argument(fmt::format("schedule: found {} requests, expected 0 to {}",
                                        options.count, kScheduleEntriesMax));
  }
  if (options.duration_ns < 0 || options.duration_ns > kLatestNs) {
    return invalid_argument(fmt::format("schedule: found a duration of {} ns, expected 0 to {}",
                                        options.duration_ns, kLatestNs));
  }
  if (!is_positive(scale.input_factor) || !is_positive(scale.output_factor)) {
    return invalid_argument(fmt::format("length scale: found {} and {}, expected factors > 0",
                                        scale.input_factor, scale.output_factor));
  }
  const auto ordered = [](int32_t low, int32_t high) {
    return low >= 1 && low <= high && high <= kTokensMax;
  };
  if (!ordered(scale.input_min, scale.input_max)) {
    return invalid_argument(
        fmt::format("input tokens: found limits {} to {}, expected 1 <= low <= high",
                    scale.input_min, scale.input_max));
  }
  if (!ordered(scale.output_min, scale.output_max)) {
    return invalid_argument(
        fmt::format("output tokens: found limits {} to {}, expected 1 <= low <= high",
                    scale.output_min, scale.output_max));
  }
  const PrefixOptions& prefix = options.prefix;
  if (prefix.groups < 0 || prefix.tokens < 0 || prefix.tokens > kTokensMax) {
    return invalid_argument(
        fmt::format("shared prefix: found {} groups of {} tokens, expected both >= 0",
                    prefix.groups, prefix.tokens));
  }
  const int32_t shared = prefix.groups > 0 ? prefix.tokens : 0;
  if (scale.total_max != 0 && scale.total_max < int64_t{shared} + 2) {
    return invalid_argument(fmt::format(
        "total tokens: found a limit of {}, expected {} at least (shared prefix, 1 in, 1 out)",
        scale.total_max, int64_t{shared} + 2));
  }
  return {};
}

// Where the lengths of entry i come from.
class LengthSource {
 public:
  static Result<LengthSource> create(const ScheduleOptions& options) {
    LengthSource source(options);
    if (options.lengths.kind == LengthOptions::Kind::kLaws) {
      if (!options.lengths.input || !options.lengths.output) {
        return invalid_argument("schedule: found no length law, expected one for input and output");
      }
      return source;
    }
    const auto rows = window_of(options.lengths.trace, options.arrivals);
    if (!rows) return rows.error();
    source.rows_ = *rows;
    return source;
  }

  void draw(int64_t index, int32_t& input, int32_t& output) {
    if (lengths_.kind == LengthOptions::Kind::kLaws) {
      input = lengths_.input->sample(input_rng_);
      output = lengths_.output->sample(output_rng_);
      return;
    }
    const auto count = rows_.size();
    const size_t row = lengths_.kind == LengthOptions::Kind::kTraceInOrder
                           ? static_cast<size_t>(index) % count
                           : static_cast<size_t>(row_rng_.uniform() * static_cast<double>(count));
    input = rows_[row].input_tokens;
    output = rows_[row].output_tokens;
  }

  std::string describe() const {
    switch (lengths_.kind) {
      case LengthOptions::Kind::kLaws:
        return fmt::format("input tokens {}, output tokens {}", lengths_.input->describe(),
                           lengths_.output->describe());
      case LengthOptions::Kind::kTraceInOrder:
        return fmt::format("lengths of trace {} in its order", lengths_.trace->name);
      case LengthOptions::Kind::kTraceResample:
        break;
    }
    return fmt::format("lengths of {} rows of trace {}, drawn in pairs", rows_.size(),
                       lengths_.trace->name);
  }

 private:
  explicit LengthSource(const ScheduleOptions& options)
      : lengths_(options.lengths),
        input_rng_(options.seed, kInputLengthStream),
        output_rng_(options.seed, kOutputLengthStream),
        row_rng_(options.seed, kTraceRowStream) {}
  LengthOptions lengths_;
  core::Rng input_rng_, output_rng_, row_rng_;
  std::span<const TraceRow> rows_;
};

// Applies a LengthScale, and counts how often its limits changed a length.
class Scaler {
 public:
  Scaler(const LengthScale& scale, int32_t shared_tokens) : scale_(scale), shared_(shared_tokens) {}

  void apply(ScheduleEntry& entry) {
    int64_t input = clamped(entry.input_tokens, scale_.input_factor, scale_.input_min,
                            scale_.input_max, input_limited_);
    int64_t output = clamped(entry.output_tokens, scale_.output_factor, scale_.output_min,
                             scale_.output_max, output_limited_);
    input += shared_;
    const int64_t total_max = scale_.total_max != 0 ? scale_.total_max : 2 * int64_t{kTokensMax};
    if (input + output > total_max) {
      input = std::max(total_max - output, int64_t{shared_} + 1);
      output = std::min(output, total_max - input);
      ++total_limited_;
    }
    // A prefix on top of the longest prompt must still fit the type; check() bounds both parts.
    entry.input_tokens = static_cast<int32_t>(std::min<int64_t>(input, 2 * int64_t{kTokensMax}));
    entry.output_tokens = static_cast<int32_t>(output);
  }

  std::string describe() const {
    std::string text;
    add(text, "input", scale_.input_factor, scale_.input_min, scale_.input_max, input_limited_);
    add(text, "output", scale_.output_factor, scale_.output_min, scale_.output_max,
        output_limited_);
    if (scale_.total_max != 0) {
      text += fmt::format("; at most {} tokens in all ({} cut)", scale_.total_max, total_limited_);
    }
    return text;
  }

 private:
  static int64_t clamped(int32_t tokens, double factor, int32_t low, int32_t high,
                         int64_t& limited) {
    const double scaled = std::min(std::floor(tokens * factor + 0.5), 2.0 * kTokensMax);
    const auto rounded = static_cast<int64_t>(scaled);
    const int64_t result = std::clamp<int64_t>(rounded, low, high);
    if (result != rounded) ++limited;
    return result;
  }

  static void add(std::string& text, std::string_view name, double factor, int32_t low,
                  int32_t high, int64_t limited) {
    if (factor == 1 && low == 1 && high == kTokensMax) return;
    text += fmt::format("; {} lengths", name);
    if (factor != 1) text += fmt::format(" scaled x{}", factor);
    if (low != 1) text += fmt::format(" to at least {}", low);
    if (high != kTokensMax) text += fmt::format(" to at most {}", high);
    if (limited > 0) text += fmt::format(" ({} limited)", limited);
  }

  LengthScale scale_;
  int32_t shared_;
  int64_t input_limited_ = 0, output_limited_ = 0, total_limited_ = 0;
};

// Instants of a trace window, scaled.
int64_t trace_instant_ns(const TraceRow& row, const ArrivalOptions& arrivals) {
  const int64_t t_ns = row.t_ns - arrivals.window_start_ns;
  if (arrivals.time_scale == 1) return t_ns;
  const double scaled = static_cast<double>(t_ns) * arrivals.time_scale;
  return static_cast<int64_t>(std::floor(std::min(scaled, 0x1p62) + 0.5));
}

}  // namespace

Result<Schedule> generate_schedule(const ScheduleOptions& options) {
  if (auto checked = check(options); !checked) return checked.error();
  const ArrivalOptions& arrivals = options.arrivals;
  const bool from_trace = arrivals.kind == ArrivalKind::kTrace;
  if (options.count == 0 && !from_trace &&
      (options.duration_ns == 0 || arrivals.kind == ArrivalKind::kAtOnce)) {
    return invalid_argument(
        "schedule: found neither a number of requests nor a duration that ends it");
  }
  auto source = LengthSource::create(options);
  if (!source) return source.error();

  std::span<const TraceRow> rows;
  std::optional<ArrivalProcess> process;
  if (from_trace) {
    if (!is_positive(arrivals.time_scale)) {
      return invalid_argument(
          fmt::format("trace time scale: found {}, expected > 0", arrivals.time_scale));
    }
    const auto window = window_of(arrivals.trace, arrivals);
    if (!window) return window.error();
    rows = *window;
    if (options.count > static_cast<int64_t>(rows.size())) {
      return invalid_argument(
          fmt::format("schedule: {} requests asked, but the window of trace {} holds {} rows",
                      options.count, arrivals.trace->name, rows.size()));
    }
  } else {
    auto made = ArrivalProcess::create(arrivals, core::Rng(options.seed, kArrivalStream));
    if (!made) return made.error();
    process = *made;
  }

  const bool has_prefix = options.prefix.groups > 0 && options.prefix.tokens > 0;
  core::Rng group_rng(options.seed, kPrefixGroupStream);
  Scaler scaler(options.scale, has_prefix ? options.prefix.tokens : 0);

  Schedule schedule;
  schedule.seed = options.seed;
  int64_t limit = from_trace ? static_cast<int64_t>(rows.size()) : kScheduleEntriesMax;
  if (options.count > 0) limit = options.count;
  for (int64_t i = 0; i < limit; ++i) {
    ScheduleEntry entry;
    entry.index = i;
    entry.t_intended_ns =
        from_trace ? trace_instant_ns(rows[static_cast<size_t>(i)], arrivals) : process->next_ns();
    if (options.duration_ns > 0 && entry.t_intended_ns > options.duration_ns) break;
    if (entry.t_intended_ns > kLatestNs) {
      return invalid_argument(fmt::format(
          "schedule: request {} would start {} days after the first, expected at most 100", i,
          entry.t_intended_ns / (int64_t{86'400} * 1'000'000'000)));
    }
    source->draw(i, entry.input_tokens, entry.output_tokens);
    scaler.apply(entry);
    if (has_prefix) {
      entry.prefix_group =
          static_cast<int32_t>(group_rng.uniform() * static_cast<double>(options.prefix.groups));
      entry.prefix_tokens = options.prefix.tokens;
    }
    schedule.entries.push_back(entry);
  }
  if (schedule.entries.empty()) {
    return invalid_argument(fmt::format("schedule: no request starts within {} s",
                                        static_cast<double>(options.duration_ns) / 1e9));
  }
  if (options.count == 0 && !from_trace &&
      static_cast<int64_t>(schedule.entries.size()) == kScheduleEntriesMax) {
    return invalid_argument(
        fmt::format("schedule: more than {} requests; ask for a shorter one", kScheduleEntriesMax));
  }

  schedule.description =
      fmt::format("{} requests, seed {}; {}; {}{}", schedule.entries.size(), options.seed,
                  describe(arrivals), source->describe(), scaler.describe());
  if (has_prefix) {
    schedule.description += fmt::format("; {} groups with a shared prefix of {} tokens",
                                        options.prefix.groups, options.prefix.tokens);
  }
  return schedule;
}

}  // namespace prony::workload
