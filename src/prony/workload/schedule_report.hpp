// ScheduleReport: what a schedule turned out to be, before anything is sent: counts, rates, a test
// of the gaps against the law they were drawn from, lengths beside those of the trace they imitate
// (means, percentiles, Kolmogorov-Smirnov, rank correlation), and how much prompts share. Printed
// by `prony bench --dry-run`, as prony.schedule-report/1 with --json. P-values: lengths are whole
// numbers with ties, which makes theirs too large (a rejection stands); likewise where the law was
// fitted to the data it is tested on. Thread safety: values; pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/stats/kolmogorov.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::workload {

struct ColumnReport {
  int64_t n = 0;
  double mean = 0, min = 0, p5 = 0, p25 = 0, p50 = 0, p75 = 0, p90 = 0, p95 = 0, p99 = 0, max = 0;
  std::optional<double> sd;
};

struct GapReport {
  int64_t n = 0;
  double mean_s = 0;
  std::optional<double> cv;  // sd / mean
  std::string law;           // "exponential", "gamma of shape 0.5", ...; empty: not tested
  std::optional<stats::KsResult> ks;
};

struct PrefixReport {
  int64_t groups = 0;          // that occur
  int64_t blocks = 0;          // different ones
  double shared_fraction = 0;  // of all prompt tokens: those that an unlimited prefix cache has
                               // seen at the beginning of an earlier prompt, or of their history
};

struct TraceReport {
  std::string name;
  ColumnReport input, output;  // scaled and limited as the schedule
  stats::KsResult input_ks, output_ks;
  std::optional<double> spearman, spearman_p;  // p: of a difference as large by chance
};

struct ScheduleReport {
  std::string description;
  uint64_t seed = 0, digest = 0;
  int64_t requests = 0, sessions = 0;  // sessions 0: single requests
  double duration_s = 0;               // last intended start
  std::optional<double> asked_rate_per_s;
  std::optional<double> drawn_rate_per_s;  // arrivals / duration
  std::optional<GapReport> gaps;           // of arrivals; none for a closed loop
  ColumnReport input, output;              // as sent; input: whole prompts
  std::optional<ColumnReport> own_input;   // without history and shared prefix, where there is some
  std::optional<double> spearman;          // of own prompt and answer
  std::optional<PrefixReport> prefix;
  std::optional<TraceReport> trace;
};

/// `options` that gave the schedule, or null for one from a file: then nothing is known of the
/// laws.
ScheduleReport report_schedule(const Schedule& schedule, const ScheduleOptions* options);
core::Json schedule_report_to_json(const ScheduleReport& report);
/// The table for people.
std::string schedule_report_text(const ScheduleReport& report);

}  // namespace prony::workload
