#include "prony/workload/schedule_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "prony/core/hash.hpp"
#include "prony/core/math.hpp"
#include "prony/stats/gamma_law.hpp"
#include "prony/stats/moments.hpp"
#include "prony/stats/quantile.hpp"
#include "prony/stats/rank_correlation.hpp"
#include "prony/workload/length_source.hpp"

namespace prony::workload {
namespace {

using Values = std::vector<double>;

// `values` sorted on the way.
ColumnReport describe_column(Values& values) {
  stats::Moments moments;
  for (const double x : values) moments.add(x);
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) { return stats::quantile_linear(values, q); };
  ColumnReport out;
  out.n = moments.n();
  out.mean = *moments.mean();
  out.sd = moments.sd();
  out.min = values.front();
  out.max = values.back();
  for (const auto& [q, into] : {std::pair{0.05, &out.p5},
                                {0.25, &out.p25},
                                {0.5, &out.p50},
                                {0.75, &out.p75},
                                {0.9, &out.p90},
                                {0.95, &out.p95},
                                {0.99, &out.p99}}) {
    *into = at(q);
  }
  return out;
}

// Gaps as a process of rate 1 would have them, if the law of `arrivals` is true.
Values unit_gaps(const std::vector<double>& instants_s, const ArrivalOptions& arrivals) {
  Values gaps;
  gaps.reserve(instants_s.size());
  double before = 0;
  for (size_t i = 0; i < instants_s.size(); ++i) {
    const double t = instants_s[i];
    if (arrivals.curve) {
      gaps.push_back(arrivals.curve->expected(t) - arrivals.curve->expected(before));
    } else if (arrivals.ramp) {
      gaps.push_back((t - before) * arrivals.ramp->rate(static_cast<int64_t>(i)));
    } else {
      gaps.push_back((t - before) * arrivals.rate_per_s);
    }
    before = t;
  }
  return gaps;
}

GapReport describe_gaps(const std::vector<double>& instants_s, const ScheduleOptions* options) {
  GapReport out;
  stats::Moments moments;
  double before = 0;
  Values gaps;
  for (const double t : instants_s) {
    gaps.push_back(t - before);
    moments.add(gaps.back());
    before = t;
  }
  out.n = moments.n();
  out.mean_s = *moments.mean();
  if (moments.sd() && out.mean_s > 0) out.cv = *moments.sd() / out.mean_s;
  if (options == nullptr || out.n < 8 || out.mean_s <= 0) return out;
  const auto& arrivals = options->arrivals;
  const auto exponential = [](double x) { return x <= 0 ? 0 : 1 - core::math::exp(-x); };
  switch (arrivals.kind) {
    case ArrivalKind::kPoisson:
    case ArrivalKind::kGamma: {
      gaps = unit_gaps(instants_s, arrivals);
      std::sort(gaps.begin(), gaps.end());
      const bool poisson = arrivals.kind == ArrivalKind::kPoisson;
      const double shape = arrivals.burstiness;
      out.law = poisson ? "exponential" : fmt::format("gamma of shape {}", shape);
      if (arrivals.curve || arrivals.ramp) out.law += ", after rescaling time by the rate";
      out.ks = stats::ks_one_sample(gaps, [&](double x) {
        return poisson ? exponential(x) : stats::gamma_cdf(x * shape, shape);
      });
      break;
    }
    case ArrivalKind::kTrace: {
      const double mean = out.mean_s;
      std::sort(gaps.begin(), gaps.end());
      out.law = "exponential of the trace's own mean";
      out.ks = stats::ks_one_sample(gaps, [&](double x) { return exponential(x / mean); });
      break;
    }
    default:
      break;
  }
  return out;
}

PrefixReport describe_prefix(const Schedule& schedule) {
  PrefixReport out;
  std::set<int32_t> groups;
  // A leading block is known by all ids up to it: their hash.
  std::unordered_set<uint64_t> chains;
  std::unordered_set<int64_t> blocks;
  double all = 0, shared = 0;
  for (const auto& entry : schedule.entries) {
    all += entry.input_tokens;
    double seen = entry.history_tokens;
    if (entry.prefix_group >= 0 && !groups.insert(entry.prefix_group).second) {
      seen += entry.prefix_tokens;
    }
    core::Fnv1a chain;
    bool leading = true;
    int64_t end = 0;
    for (const int64_t id : schedule.blocks_of(entry)) {
      chain.add(static_cast<uint64_t>(id));
      blocks.insert(id);
      const bool known = !chains.insert(chain.value()).second;
      leading = leading && known;
      const int64_t begin = end;
      end = std::min<int64_t>(begin + schedule.block_tokens, entry.input_tokens);
      if (leading) seen += static_cast<double>(end - begin);
    }
    shared += std::min<double>(seen, entry.input_tokens);
  }
  out.groups = static_cast<int64_t>(groups.size());
  out.blocks = static_cast<int64_t>(blocks.size());
  out.shared_fraction = shared / all;
  return out;
}

TraceReport describe_trace(const ScheduleOptions& options, std::span<const TraceRow> rows,
                           Values own_input, Values output, std::optional<double> spearman) {
  TraceReport out;
  out.name = options.lengths.trace->name;
  const auto& scale = options.scale;
  Values trace_input, trace_output;
  for (const auto& row : rows) {
    trace_input.push_back(static_cast<double>(
        scaled_tokens(row.input_tokens, scale.input_factor, scale.input_min, scale.input_max)));
    trace_output.push_back(static_cast<double>(
        scaled_tokens(row.output_tokens, scale.output_factor, scale.output_min, scale.output_max)));
  }
  out.spearman = stats::spearman(trace_input, trace_output);
  if (out.spearman && spearman) {
    out.spearman_p =
        stats::spearman_difference_p(*out.spearman, static_cast<int64_t>(rows.size()), *spearman,
                                     static_cast<int64_t>(own_input.size()));
  }
  out.input = describe_column(trace_input);
  out.output = describe_column(trace_output);
  std::sort(own_input.begin(), own_input.end());
  std::sort(output.begin(), output.end());
  out.input_ks = stats::ks_two_sample(own_input, trace_input);
  out.output_ks = stats::ks_two_sample(output, trace_output);
  return out;
}

core::Json to_json(const ColumnReport& c) {
  core::Json json{{"n", c.n},     {"mean", c.mean}, {"sd", nullptr}, {"min", c.min},
                  {"p5", c.p5},   {"p25", c.p25},   {"p50", c.p50},  {"p75", c.p75},
                  {"p90", c.p90}, {"p95", c.p95},   {"p99", c.p99},  {"max", c.max}};
  if (c.sd) json["sd"] = *c.sd;
  return json;
}

core::Json to_json(const stats::KsResult& ks) {
  return {{"distance", ks.distance}, {"p_value", ks.p_value}};
}

core::Json to_json(const std::optional<double>& value) {
  return value ? core::Json(*value) : core::Json(nullptr);
}

std::string row(std::string_view name, const ColumnReport& c) {
  return fmt::format("{:<24}{:>10.1f}{:>10}{:>9.0f}{:>9.0f}{:>9.0f}{:>9.0f}{:>9.0f}{:>9.0f}\n",
                     name, c.mean, c.sd ? fmt::format("{:.1f}", *c.sd) : "-", c.p5, c.p50, c.p90,
                     c.p95, c.p99, c.max);
}

std::string verdict(const stats::KsResult& ks) {
  return fmt::format("KS distance {:.4f}, p {:.3g}", ks.distance, ks.p_value);
}

}  // namespace

ScheduleReport report_schedule(const Schedule& schedule, const ScheduleOptions* options) {
  ScheduleReport out;
  out.description = schedule.description;
  out.seed = schedule.seed;
  out.digest = schedule.digest();
  out.requests = static_cast<int64_t>(schedule.entries.size());
  Values input, own_input, output;
  std::vector<double> instants_s;
  bool has_own = false;
  for (const auto& entry : schedule.entries) {
    input.push_back(entry.input_tokens);
    const int32_t own = entry.input_tokens - entry.history_tokens - entry.prefix_tokens;
    has_own = has_own || own != entry.input_tokens;
    own_input.push_back(own);
    output.push_back(entry.output_tokens);
    if (entry.turn > 0) continue;
    if (entry.session >= 0) ++out.sessions;
    instants_s.push_back(static_cast<double>(entry.t_intended_ns) / 1e9);
  }
  out.duration_s = instants_s.back();
  out.spearman = stats::spearman(own_input, output);
  const bool timed = instants_s.back() > 0;
  if (timed) {
    out.drawn_rate_per_s = static_cast<double>(instants_s.size()) / out.duration_s;
    out.gaps = describe_gaps(instants_s, options);
  }
  const bool shares = schedule.block_tokens > 0 ||
                      std::any_of(schedule.entries.begin(), schedule.entries.end(), [](auto& e) {
                        return e.prefix_group >= 0 || e.history_tokens > 0;
                      });
  if (shares) out.prefix = describe_prefix(schedule);
  if (options != nullptr) {
    const auto& arrivals = options->arrivals;
    const bool has_rate =
        arrivals.kind != ArrivalKind::kTrace && arrivals.kind != ArrivalKind::kAtOnce;
    if (timed && has_rate && !arrivals.curve && !arrivals.ramp) {
      out.asked_rate_per_s = arrivals.rate_per_s;
    } else if (timed && has_rate && arrivals.curve) {
      out.asked_rate_per_s = arrivals.curve->expected(out.duration_s) / out.duration_s;
    }
    if (options->lengths.trace) {
      if (const auto rows = window_of(options->lengths.trace, arrivals); rows) {
        out.trace = describe_trace(*options, *rows, own_input, output, out.spearman);
      }
    }
  }
  out.input = describe_column(input);
  out.output = describe_column(output);
  if (has_own) out.own_input = describe_column(own_input);
  return out;
}

core::Json schedule_report_to_json(const ScheduleReport& report) {
  core::Json json;
  json["schema"] = "prony.schedule-report/1";
  json["description"] = report.description;
  json["seed"] = report.seed;
  json["digest"] = fmt::format("{:016x}", report.digest);
  json["requests"] = report.requests;
  json["sessions"] = report.sessions;
  json["duration_s"] = report.duration_s;
  json["asked_rate_per_s"] = to_json(report.asked_rate_per_s);
  json["drawn_rate_per_s"] = to_json(report.drawn_rate_per_s);
  json["gaps"] = nullptr;
  if (report.gaps) {
    json["gaps"] = {{"n", report.gaps->n},
                    {"mean_s", report.gaps->mean_s},
                    {"cv", to_json(report.gaps->cv)},
                    {"law", report.gaps->law},
                    {"ks", nullptr}};
    if (report.gaps->ks) json["gaps"]["ks"] = to_json(*report.gaps->ks);
  }
  json["input_tokens"] = to_json(report.input);
  json["own_input_tokens"] = report.own_input ? to_json(*report.own_input) : core::Json(nullptr);
  json["output_tokens"] = to_json(report.output);
  json["spearman"] = to_json(report.spearman);
  json["prefix"] = nullptr;
  if (report.prefix) {
    json["prefix"] = {{"groups", report.prefix->groups},
                      {"blocks", report.prefix->blocks},
                      {"shared_fraction", report.prefix->shared_fraction}};
  }
  json["trace"] = nullptr;
  if (report.trace) {
    const auto& trace = *report.trace;
    json["trace"] = {{"name", trace.name},
                     {"input_tokens", to_json(trace.input)},
                     {"output_tokens", to_json(trace.output)},
                     {"input_ks", to_json(trace.input_ks)},
                     {"output_ks", to_json(trace.output_ks)},
                     {"spearman", to_json(trace.spearman)},
                     {"spearman_difference_p", to_json(trace.spearman_p)}};
  }
  return json;
}

std::string schedule_report_text(const ScheduleReport& report) {
  std::string text =
      fmt::format("{}\ndigest {:016x}; nothing was sent\n\n", report.description, report.digest);
  text += fmt::format("requests  {}", report.requests);
  if (report.sessions > 0) {
    text +=
        fmt::format(" in {} conversations, {:.2f} turns on average", report.sessions,
                    static_cast<double>(report.requests) / static_cast<double>(report.sessions));
  }
  text += '\n';
  if (report.drawn_rate_per_s) {
    text += fmt::format("arrivals  {:.4g}/s drawn", *report.drawn_rate_per_s);
    if (report.asked_rate_per_s) text += fmt::format(", {:.4g}/s asked", *report.asked_rate_per_s);
    text += fmt::format(", the last at {:.3f} s\n", report.duration_s);
  }
  if (report.gaps) {
    text += fmt::format("gaps      mean {:.4g} ms", report.gaps->mean_s * 1e3);
    if (report.gaps->cv) text += fmt::format(", coefficient of variation {:.3f}", *report.gaps->cv);
    if (report.gaps->ks) {
      text += fmt::format("; against {}: {}", report.gaps->law, verdict(*report.gaps->ks));
    }
    text += '\n';
  }
  if (report.prefix) {
    text += fmt::format(
        "sharing   {:.1f} % of the prompt tokens begin an earlier prompt or are "
        "history",
        100 * report.prefix->shared_fraction);
    if (report.prefix->groups > 0) text += fmt::format("; {} groups", report.prefix->groups);
    if (report.prefix->blocks > 0) {
      text += fmt::format("; {} different blocks", report.prefix->blocks);
    }
    text += '\n';
  }
  text += fmt::format("\n{:<24}{:>10}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}\n", "tokens", "mean",
                      "sd", "p5", "p50", "p90", "p95", "p99", "max");
  text += row("prompt", report.input);
  if (report.own_input) text += row("  of it, new", *report.own_input);
  if (report.trace) text += row("  in the trace", report.trace->input);
  text += row("answer", report.output);
  if (report.trace) text += row("  in the trace", report.trace->output);
  if (report.trace) {
    text += fmt::format("\nagainst trace {}: prompts {}; answers {}\n", report.trace->name,
                        verdict(report.trace->input_ks), verdict(report.trace->output_ks));
  }
  if (report.spearman) {
    text += fmt::format("rank correlation of prompt and answer: {:.3f}", *report.spearman);
    if (report.trace && report.trace->spearman) {
      text += fmt::format(", in the trace {:.3f}", *report.trace->spearman);
      if (report.trace->spearman_p) {
        text += fmt::format(" (p {:.3g} of the difference)", *report.trace->spearman_p);
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace prony::workload
