#include "prony/workload/length_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "prony/workload/streams.hpp"

namespace prony::workload {
namespace {

constexpr int64_t kLatestNs = int64_t{100} * 86'400 * 1'000'000'000;  // as generate_schedule()

constexpr int32_t kTurnsMax = 10'000;  // of a conversation; a law without an end meets it

std::vector<double> column(std::span<const TraceRow> rows, int32_t TraceRow::*field) {
  std::vector<double> values;
  values.reserve(rows.size());
  for (const auto& row : rows) values.push_back(row.*field);
  return values;
}

std::vector<int32_t> tokens(std::span<const TraceRow> rows, int32_t TraceRow::*field) {
  std::vector<int32_t> values;
  values.reserve(rows.size());
  for (const auto& row : rows) values.push_back(row.*field);
  return values;
}

int32_t whole_tokens(double x) {
  return static_cast<int32_t>(std::clamp(std::floor(x + 0.5), 1.0, double{kTokensMax}));
}

}  // namespace

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
  if (!trace->has_times) {
    if (options.window_start_ns == 0 && options.window_length_ns == 0) {
      return std::span<const TraceRow>(trace->rows);
    }
    return invalid_argument(
        fmt::format("trace window: found one, but {} has no times", trace->name));
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

int64_t scaled_tokens(int32_t tokens, double factor, int32_t low, int32_t high) {
  const double scaled = std::min(std::floor(tokens * factor + 0.5), 2.0 * kTokensMax);
  return std::clamp<int64_t>(static_cast<int64_t>(scaled), low, high);
}

LengthSource::LengthSource(const ScheduleOptions& options)
    : lengths_(options.lengths),
      turns_law_(options.sessions.turns),
      input_rng_(options.seed, kInputLengthStream),
      output_rng_(options.seed, kOutputLengthStream),
      row_rng_(options.seed, kTraceRowStream),
      turns_rng_(options.seed, kTurnsStream),
      pair_rng_(options.seed, kPairKdeStream) {}

Result<LengthSource> LengthSource::create(const ScheduleOptions& options) {
  using Kind = LengthOptions::Kind;
  LengthSource source(options);
  auto& lengths = source.lengths_;
  if (lengths.kind == Kind::kLaws) {
    if (!lengths.input || !lengths.output) {
      return invalid_argument("schedule: found no length law, expected one for input and output");
    }
    return source;
  }
  const auto rows = window_of(lengths.trace, options.arrivals);
  if (!rows) return rows.error();
  source.rows_ = *rows;
  if (lengths.kind == Kind::kTraceKde) {
    auto input =
        LengthLaw::kde(tokens(*rows, &TraceRow::input_tokens), lengths.input_kde, "prompts");
    if (!input) return input.error();
    auto output =
        LengthLaw::kde(tokens(*rows, &TraceRow::output_tokens), lengths.output_kde, "answers");
    if (!output) return output.error();
    lengths.input = std::move(input).value();
    lengths.output = std::move(output).value();
  } else if (lengths.kind == Kind::kTraceKdePairs) {
    auto pairs = stats::PairKde::create(column(*rows, &TraceRow::input_tokens),
                                        column(*rows, &TraceRow::output_tokens), lengths.input_kde,
                                        lengths.output_kde);
    if (!pairs) return pairs.error();
    source.pairs_ = std::move(pairs).value();
  } else if (lengths.trace->has_sessions() && !options.sessions.turns) {
    source.start_sessions();
  }
  return source;
}

void LengthSource::start_sessions() {
  from_sessions_ = true;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].turn == 0) session_starts_.push_back(i);
  }
  session_starts_.push_back(rows_.size());
}

LengthSource::Turn LengthSource::draw_one(int64_t index) {
  using Kind = LengthOptions::Kind;
  switch (lengths_.kind) {
    case Kind::kLaws:
    case Kind::kTraceKde: {
      const int32_t input = lengths_.input->sample(input_rng_);
      return {input, lengths_.output->sample(output_rng_), nullptr};
    }
    case Kind::kTraceKdePairs: {
      const auto [input, output] = pairs_->sample(pair_rng_);
      return {whole_tokens(input), whole_tokens(output), nullptr};
    }
    default:
      break;
  }
  const auto count = rows_.size();
  const size_t row = lengths_.kind == Kind::kTraceInOrder
                         ? static_cast<size_t>(index) % count
                         : static_cast<size_t>(row_rng_.uniform() * static_cast<double>(count));
  return {rows_[row].input_tokens, rows_[row].output_tokens, &rows_[row]};
}

std::span<const LengthSource::Turn> LengthSource::draw(int64_t index) {
  turns_.clear();
  if (from_sessions_) {
    const size_t count = session_starts_.size() - 1;
    const size_t session =
        lengths_.kind == LengthOptions::Kind::kTraceInOrder
            ? static_cast<size_t>(index) % count
            : static_cast<size_t>(row_rng_.uniform() * static_cast<double>(count));
    for (size_t i = session_starts_[session]; i < session_starts_[session + 1]; ++i) {
      turns_.push_back({rows_[i].input_tokens, rows_[i].output_tokens, &rows_[i]});
    }
    return turns_;
  }
  const int32_t turns = turns_law_ ? std::min(turns_law_->sample(turns_rng_), kTurnsMax) : 1;
  for (int32_t i = 0; i < turns; ++i) turns_.push_back(draw_one(drawn_++));
  return turns_;
}

std::string LengthSource::describe() const {
  using Kind = LengthOptions::Kind;
  std::string text;
  const auto kernel = [](const stats::KdeOptions& kde, double bandwidth) {
    return fmt::format("{:.4g}{}", bandwidth, kde.log ? " of the logarithm" : "");
  };
  switch (lengths_.kind) {
    case Kind::kLaws:
      text = fmt::format("input tokens {}, output tokens {}", lengths_.input->describe(),
                         lengths_.output->describe());
      break;
    case Kind::kTraceInOrder:
      text = fmt::format("lengths of trace {} in its order", lengths_.trace->name);
      break;
    case Kind::kTraceResample:
      text = fmt::format("lengths of {} {} of trace {}, drawn {}",
                         from_sessions_ ? session_starts_.size() - 1 : rows_.size(),
                         from_sessions_ ? "conversations" : "rows", lengths_.trace->name,
                         from_sessions_ ? "as a whole" : "in pairs");
      break;
    case Kind::kTraceKde:
      text = fmt::format(
          "lengths of {} rows of trace {} by kernel density, each column by itself, bandwidths {} "
          "and {}",
          rows_.size(), lengths_.trace->name,
          kernel(lengths_.input_kde, lengths_.input->bandwidth()),
          kernel(lengths_.output_kde, lengths_.output->bandwidth()));
      break;
    case Kind::kTraceKdePairs:
      text = fmt::format(
          "lengths of {} rows of trace {} by kernel density of the pairs, bandwidths {} and {}",
          rows_.size(), lengths_.trace->name, kernel(lengths_.input_kde, pairs_->first_bandwidth()),
          kernel(lengths_.output_kde, pairs_->second_bandwidth()));
      break;
  }
  if (lengths_.trace) {
    if (lengths_.trace->skipped_rows > 0) {
      text +=
          fmt::format(", {} rows without prompt or answer left out", lengths_.trace->skipped_rows);
    }
    if (!lengths_.trace->note.empty()) text += fmt::format(", {}", lengths_.trace->note);
  }
  return text;
}

}  // namespace prony::workload
