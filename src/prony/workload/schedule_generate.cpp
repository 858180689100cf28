// generate_schedule(): options to entries. One pass over the arrivals; each takes its instant, its
// lengths, its prefix group, its turns and their think times from streams of their own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "prony/core/math.hpp"
#include "prony/workload/length_source.hpp"
#include "prony/workload/schedule.hpp"
#include "prony/workload/streams.hpp"

namespace prony::workload {
namespace {

// 100 days: instants stay exact in a double, and a mistaken unit is found out.
constexpr int64_t kLatestNs = int64_t{100} * 86'400 * 1'000'000'000;

constexpr int32_t kZipfGroupsMax = 1'000'000;

bool is_positive(double x) {
  return x > 0 && std::isfinite(x);
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
  if (!(prefix.zipf >= 0 && prefix.zipf <= 10) ||
      (prefix.zipf > 0 && prefix.groups > kZipfGroupsMax)) {
    return invalid_argument(
        fmt::format("shared prefix: found a Zipf exponent of {} over {} groups, expected 0 to 10 "
                    "over at most {}",
                    prefix.zipf, prefix.groups, kZipfGroupsMax));
  }
  if (options.sessions.count < 0 || options.sessions.count > kScheduleEntriesMax) {
    return invalid_argument(fmt::format("schedule: found {} conversations, expected 0 to {}",
                                        options.sessions.count, kScheduleEntriesMax));
  }
  const int32_t shared = prefix.groups > 0 ? prefix.tokens : 0;
  if (scale.total_max != 0 && scale.total_max < int64_t{shared} + 2) {
    return invalid_argument(fmt::format(
        "total tokens: found a limit of {}, expected {} at least (shared prefix, 1 in, 1 out)",
        scale.total_max, int64_t{shared} + 2));
  }
  return {};
}

// Applies a LengthScale, and counts how often its limits changed a length.
class Scaler {
 public:
  explicit Scaler(const LengthScale& scale) : scale_(scale) {}

  /// `shared` tokens of a prefix are put before the prompt.
  void apply(ScheduleEntry& entry, int32_t shared) {
    int64_t input = clamped(entry.input_tokens, scale_.input_factor, scale_.input_min,
                            scale_.input_max, input_limited_);
    int64_t output = clamped(entry.output_tokens, scale_.output_factor, scale_.output_min,
                             scale_.output_max, output_limited_);
    input += shared;
    const int64_t total_max = scale_.total_max != 0 ? scale_.total_max : 2 * int64_t{kTokensMax};
    if (input + output > total_max) {
      input = std::max(total_max - output, int64_t{shared} + 1);
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
    const int64_t result = scaled_tokens(tokens, factor, low, high);
    if (result != scaled_tokens(tokens, factor, 0, INT32_MAX)) ++limited;
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
  int64_t input_limited_ = 0, output_limited_ = 0, total_limited_ = 0;
};

// Instants of a trace window, scaled.
int64_t trace_instant_ns(const TraceRow& row, const ArrivalOptions& arrivals) {
  const int64_t t_ns = row.t_ns - arrivals.window_start_ns;
  if (arrivals.time_scale == 1) return t_ns;
  const double scaled = static_cast<double>(t_ns) * arrivals.time_scale;
  return static_cast<int64_t>(std::floor(std::min(scaled, 0x1p62) + 0.5));
}

// The instants at which requests or conversations start: of a process, or of a trace.
class Arrivals {
 public:
  static Result<Arrivals> create(const ScheduleOptions& options) {
    Arrivals made;
    made.options_ = options.arrivals;
    const auto& arrivals = options.arrivals;
    if (arrivals.kind != ArrivalKind::kTrace) {
      auto process = ArrivalProcess::create(arrivals, core::Rng(options.seed, kArrivalStream));
      if (!process) return process.error();
      made.process_ = *process;
      return made;
    }
    if (!is_positive(arrivals.time_scale)) {
      return invalid_argument(
          fmt::format("trace time scale: found {}, expected > 0", arrivals.time_scale));
    }
    const auto window = window_of(arrivals.trace, arrivals);
    if (!window) return window.error();
    if (!arrivals.trace->has_times) {
      return invalid_argument(
          fmt::format("arrivals of trace {}: it has no times, give a rate or a concurrency",
                      arrivals.trace->name));
    }
    made.rows_ = *window;
    if (options.count > static_cast<int64_t>(made.rows_.size()) && !options.sessions.turns) {
      return invalid_argument(
          fmt::format("schedule: {} requests asked, but the window of trace {} holds {} rows",
                      options.count, arrivals.trace->name, made.rows_.size()));
    }
    return made;
  }

  /// nullopt after the last.
  std::optional<int64_t> next_ns() {
    if (process_) {
      const int64_t t_ns = process_->next_ns();
      if (t_ns == ArrivalProcess::kNeverNs && options_.curve) return std::nullopt;
      return t_ns;
    }
    if (at_ == rows_.size()) return std::nullopt;
    return trace_instant_ns(rows_[at_++], options_);
  }

 private:
  ArrivalOptions options_;
  std::optional<ArrivalProcess> process_;
  std::span<const TraceRow> rows_;
  size_t at_ = 0;
};

// Which prefix group an arrival belongs to.
class GroupPicker {
 public:
  explicit GroupPicker(const ScheduleOptions& options)
      : rng_(options.seed, kPrefixGroupStream), groups_(options.prefix.groups) {
    if (options.prefix.zipf == 0) return;
    double sum = 0;
    for (int32_t k = 1; k <= groups_; ++k) {
      sum += core::math::pow(k, -options.prefix.zipf);
      cumulative_.push_back(sum);
    }
  }
  int32_t pick() {
    const double u = rng_.uniform();
    if (cumulative_.empty()) return static_cast<int32_t>(u * static_cast<double>(groups_));
    const auto at =
        std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, u * cumulative_.back());
    return static_cast<int32_t>(at - cumulative_.begin());
  }

 private:
  core::Rng rng_;
  int32_t groups_;
  std::vector<double> cumulative_;
};

// Collects the entries, conversation by conversation.
class Builder {
 public:
  Builder(const ScheduleOptions& options, LengthSource source)
      : options_(options),
        source_(std::move(source)),
        scaler_(options.scale),
        picker_(options),
        think_rng_(options.seed, kThinkStream),
        has_prefix_(options.prefix.groups > 0 && options.prefix.tokens > 0) {
    const auto& curve = options.arrivals.curve;
    staged_ = curve && !curve->repeats() && curve->size() > 1;
    const auto& trace = options.lengths.trace;
    if (trace && trace->block_tokens > 0) {
      const double scaled = std::floor(trace->block_tokens * options.scale.input_factor + 0.5);
      block_tokens_ =
          static_cast<int32_t>(std::clamp(scaled, 1.0, static_cast<double>(kTokensMax)));
    }
  }

  Result<Schedule> build(Arrivals arrivals) {
    schedule_.seed = options_.seed;
    const int64_t most = options_.count > 0 ? options_.count : kScheduleEntriesMax;
    const int64_t starts = options_.sessions.count > 0 ? options_.sessions.count : INT64_MAX;
    bool ended = false;
    for (int64_t i = 0; i < starts && size() < most; ++i) {
      const auto t_ns = arrivals.next_ns();
      ended = !t_ns || (options_.duration_ns > 0 && *t_ns > options_.duration_ns);
      if (ended) break;
      if (*t_ns > kLatestNs) {
        return invalid_argument(fmt::format(
            "schedule: request {} would start {} days after the first, expected at most 100",
            size(), *t_ns / (int64_t{86'400} * 1'000'000'000)));
      }
      add(i, *t_ns, most);
    }
    if (schedule_.entries.empty()) {
      return invalid_argument(fmt::format("schedule: no request starts within {} s",
                                          static_cast<double>(options_.duration_ns) / 1e9));
    }
    if (options_.count == 0 && !ended && size() == kScheduleEntriesMax) {
      return invalid_argument(fmt::format("schedule: more than {} requests; ask for a shorter one",
                                          kScheduleEntriesMax));
    }
    if (!schedule_.blocks.empty()) schedule_.block_tokens = block_tokens_;
    describe_all();
    return std::move(schedule_);
  }

 private:
  int64_t size() const { return static_cast<int64_t>(schedule_.entries.size()); }

  // One arrival: a request, or the turns of a conversation.
  void add(int64_t start, int64_t t_ns, int64_t most) {
    const int32_t group = has_prefix_ ? picker_.pick() : -1;
    const auto turns = source_.draw(start);
    int64_t history = 0;
    int32_t turn = 0;
    for (const auto& drawn : turns) {
      if (size() == most) break;
      ScheduleEntry entry;
      entry.index = size();
      entry.t_intended_ns = t_ns;
      entry.input_tokens = drawn.input;
      entry.output_tokens = drawn.output;
      const int32_t shared = turn == 0 && group >= 0 ? options_.prefix.tokens : 0;
      scaler_.apply(entry, shared);
      if (shared > 0) {
        entry.prefix_group = group;
        entry.prefix_tokens = shared;
      }
      if (source_.makes_sessions()) {
        const int64_t whole = history + entry.input_tokens;
        const int64_t total_max =
            options_.scale.total_max > 0 ? options_.scale.total_max : 2 * int64_t{kTokensMax};
        if (turn > 0 && whole + entry.output_tokens > total_max) {
          turns_cut_ += static_cast<int64_t>(turns.size()) - turn;
          break;
        }
        entry.session = start;
        entry.turn = turn;
        if (turn > 0 && options_.sessions.think) {
          entry.think_ns = options_.sessions.think->sample_ns(think_rng_);
        }
        entry.history_tokens = static_cast<int32_t>(history);
        entry.input_tokens = static_cast<int32_t>(whole);
        history = whole + entry.output_tokens;
      }
      if (staged_) {
        const double t_s = static_cast<double>(t_ns) / 1e9;
        entry.stage = static_cast<int32_t>(options_.arrivals.curve->piece_at(t_s));
      }
      if (drawn.row != nullptr && drawn.row->block_count > 0) add_blocks(*drawn.row, entry);
      schedule_.entries.push_back(entry);
      ++turn;
    }
    if (turn > 0) ++started_;
  }

  // As many of the row's blocks as begin within the prompt: scaling and limits may have cut it.
  void add_blocks(const TraceRow& row, ScheduleEntry& entry) {
    const auto ids = options_.lengths.trace->blocks_of(row);
    const int64_t covered = (int64_t{entry.input_tokens} + block_tokens_ - 1) / block_tokens_;
    const auto count = std::min<size_t>(ids.size(), static_cast<size_t>(covered));
    entry.first_block = static_cast<int64_t>(schedule_.blocks.size());
    entry.block_count = static_cast<int32_t>(count);
    schedule_.blocks.insert(schedule_.blocks.end(), ids.begin(),
                            ids.begin() + static_cast<std::ptrdiff_t>(count));
  }

  void describe_all() {
    auto& text = schedule_.description;
    text = fmt::format("{} requests, seed {}; {}; {}{}", size(), options_.seed,
                       describe(options_.arrivals), source_.describe(), scaler_.describe());
    if (source_.makes_sessions()) {
      text += fmt::format("; {} conversations", started_);
      if (options_.sessions.turns) {
        text += fmt::format(" of {} turns", options_.sessions.turns->describe());
      }
      if (options_.sessions.think) {
        text += fmt::format(", think time {} s", options_.sessions.think->describe());
      }
      if (turns_cut_ > 0) text += fmt::format(" ({} turns beyond the limit left out)", turns_cut_);
    }
    if (has_prefix_) {
      text += fmt::format("; {} groups with a shared prefix of {} tokens", options_.prefix.groups,
                          options_.prefix.tokens);
      if (options_.prefix.zipf > 0) text += fmt::format(", Zipf {}", options_.prefix.zipf);
    }
    if (schedule_.block_tokens > 0) {
      text += fmt::format("; prefix blocks of {} tokens as in the trace", schedule_.block_tokens);
    }
  }

  const ScheduleOptions& options_;
  LengthSource source_;
  Scaler scaler_;
  GroupPicker picker_;
  core::Rng think_rng_;
  bool has_prefix_;
  bool staged_ = false;       // the curve has stages, one after the other
  int32_t block_tokens_ = 0;  // scaled
  int64_t started_ = 0, turns_cut_ = 0;
  Schedule schedule_;
};

}  // namespace

Result<Schedule> generate_schedule(const ScheduleOptions& options) {
  if (auto checked = check(options); !checked) return checked.error();
  const ArrivalOptions& arrivals = options.arrivals;
  const bool from_trace = arrivals.kind == ArrivalKind::kTrace;
  const bool curve_ends = arrivals.curve && !arrivals.curve->repeats();
  if (options.count == 0 && options.sessions.count == 0 && !from_trace && !curve_ends &&
      (options.duration_ns == 0 || arrivals.kind == ArrivalKind::kAtOnce)) {
    return invalid_argument(
        "schedule: found neither a number of requests nor a duration that ends it");
  }
  auto source = LengthSource::create(options);
  if (!source) return source.error();
  auto made = Arrivals::create(options);
  if (!made) return made.error();
  Builder builder(options, *std::move(source));
  return builder.build(*std::move(made));
}

}  // namespace prony::workload
