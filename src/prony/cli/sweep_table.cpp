// The sweep on a terminal: one row a cell, and what is to be run before it is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/cli/sweep_plan.hpp"

namespace prony::cli {
namespace {

using Row = std::vector<std::string>;

// Columns as wide as they need; the first `left` of them to the left.
std::string aligned(const std::vector<Row>& rows, size_t left) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == widths.size();  // notes: no padding behind
      if (i < left) {
        line += fmt::format("{:<{}}  ", row[i], widths[i]);
      } else if (last) {
        line += row[i];
      } else {
        line += fmt::format("{:>{}}  ", row[i], widths[i]);
      }
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  }
  return out;
}

std::string number(const std::optional<double>& value) {
  if (!value) return "-";
  const double size = std::fabs(*value);
  return fmt::format("{:.{}f}", *value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

std::string time_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string note_of(const record::SweepCell& cell) {
  if (!cell.has_metrics()) return cell.error;
  std::string out;
  const auto add = [&out](const std::string& text) { out += (out.empty() ? "" : "; ") + text; };
  if (!cell.validity.valid) add("INVALID: " + cell.validity.reasons.front());
  if (cell.metrics.overloaded == true) add("OVERLOADED");
  const auto failed = cell.metrics.failed.value_or(0);
  if (failed > 0) add(fmt::format("{} failed", failed));
  if (cell.slo_met) add(*cell.slo_met ? "slo kept" : "slo broken");
  if (cell.resumed) add("from before");
  return out;
}

}  // namespace

std::string sweep_table(const record::Sweep& sweep) {
  Row head;
  for (const auto& axis : sweep.axes) head.push_back(axis.name);
  if (sweep.num_runs > 1) head.push_back("run");
  const size_t left = head.size() + 1;
  for (const char* title : {"status", "req/s", "out tok/s", "TTFT p50", "p99 [ms]", "TPOT p50",
                            "p99 [ms]", "E2E p50", "p99 [ms]", ""}) {
    head.emplace_back(title);
  }
  std::vector<Row> rows = {head};
  for (const auto& cell : sweep.cells) {
    Row row = cell.values;
    if (sweep.num_runs > 1) row.push_back(std::to_string(cell.run));
    row.emplace_back(record::cell_status_name(cell.status));
    const auto& m = cell.metrics;
    for (const auto& value :
         {m.request_throughput, m.output_throughput, m.ttft_ms.p50, m.ttft_ms.p99, m.tpot_ms.p50,
          m.tpot_ms.p99, m.e2e_ms.p50, m.e2e_ms.p99}) {
      row.push_back(number(value));
    }
    row.push_back(note_of(cell));
    rows.push_back(std::move(row));
  }
  auto out = aligned(rows, left);
  const auto points = record::sweep_points(sweep);
  for (const auto& knee : record::sweep_knees(sweep, points)) {
    const auto& point = points[knee.point];
    std::string where;
    for (size_t i = 0; i < point.values.size(); ++i) {
      where += fmt::format("{}{}={}", i == 0 ? "" : " ", sweep.axes[i].name, point.values[i]);
    }
    out += fmt::format("knee at {}: {} requests/s, E2E mean {} ms{}\n", where,
                       number(point.metric("request_throughput").value),
                       number(point.metric("e2e_mean_ms").value),
                       knee.at_the_edge ? " (the last value: it may lie beyond)" : "");
  }
  return out;
}

std::string dry_run_text(const SweepPlan& plan, const record::Sweep& sweep, double pause_s) {
  Row head;
  for (const auto& axis : sweep.axes) head.push_back(axis.name);
  if (sweep.num_runs > 1) head.push_back("run");
  head.insert(head.end(), {"seed", "load", ""});
  std::vector<Row> rows = {head};
  double total = 0;
  int64_t unknown = 0, kept = 0;
  for (size_t i = 0; i < sweep.cells.size(); ++i) {
    const auto& cell = sweep.cells[i];
    Row row = cell.values;
    if (sweep.num_runs > 1) row.push_back(std::to_string(cell.run));
    row.push_back(std::to_string(cell.seed));
    const bool done = cell.resumed;
    const auto load_s = done ? cell.metrics.duration_s : plan.cells[i].load_s;
    row.push_back(load_s ? time_text(*load_s) : "?");
    row.push_back(done ? "done before" : "");
    rows.push_back(std::move(row));
    kept += done;
    if (done) continue;
    total += load_s.value_or(0) + pause_s;
    unknown += !load_s;
  }
  const auto to_run = static_cast<int64_t>(sweep.cells.size()) - kept;
  auto out = aligned(rows, rows.front().size() - 3);
  out += fmt::format("{} cells, {} to run: {}{} of load{}\n", sweep.cells.size(), to_run,
                     unknown > 0 ? "at least " : "", time_text(total),
                     pause_s > 0 ? " and pauses" : "");
  if (unknown > 0) {
    out += fmt::format(
        "{} of them are closed loops by count (?): they take as long as the server needs\n",
        unknown);
  }
  return out;
}

}  // namespace prony::cli
