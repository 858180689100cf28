// prony bench --sweep: a grid of runs, one record a cell.
#include "prony/cli/bench_sweep.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "prony/cli/interrupt.hpp"
#include "prony/cli/sweep_runner.hpp"
#include "prony/core/file.hpp"
#include "prony/core/system.hpp"
#include "prony/report/sweep_page.hpp"

namespace prony::cli {
namespace {

void note(std::string_view text) {
  fmt::print(stderr, "prony bench: {}\n", text);
}

int exit_code(const BenchFlags& flags, const record::Sweep& sweep, bool broke_a_rule) {
  using record::CellStatus;
  const auto cells = static_cast<int64_t>(sweep.cells.size());
  const auto undone = cells - sweep.count(CellStatus::kDone);
  if (undone > 0) note(fmt::format("{} of {} cells have no result", undone, cells));
  const auto invalid = flags.on_invalid == "fail" ? sweep.count_invalid() : 0;
  if (invalid > 0) {
    note(fmt::format("{} of {} cells are invalid (--on-invalid warn accepts it)", invalid, cells));
  }
  return undone > 0 || invalid > 0 || broke_a_rule ? kExitFailed : kExitOk;
}

// A sweep costs hours: it is not written over by a forgotten --resume.
Result<void> check_folder(const BenchFlags& flags) {
  if (!flags.out || flags.sweep.resume) return {};
  if (!core::read_file(*flags.out + "/sweep.json").ok()) return {};
  return invalid_argument(fmt::format(
      "--out {}: found a sweep there, expected an empty folder, or --resume to go on with it",
      *flags.out));
}

}  // namespace

Result<int> run_sweep(const Arguments& arguments, BenchFlags& flags, const core::Group& group) {
  if (!group.alone()) {
    return invalid_argument(fmt::format("--sweep: found {} processes, expected one", group.size()));
  }
  const auto plan = plan_sweep(arguments, flags);
  if (!plan) return plan.error();
  auto sweep = make_sweep_document(plan.value(), flags);
  const Interrupt interrupt;
  SweepRunner runner(plan.value(), flags, sweep, interrupt.flag(), note);
  if (flags.sweep.resume) runner.resume();
  if (flags.workload.dry_run) {
    fmt::print("{}", dry_run_text(plan.value(), sweep, flags.sweep.pause_s));
    return kExitOk;
  }
  if (auto free = check_folder(flags); !free) return free.error();
  if (flags.out) {
    if (auto made = core::make_directories(*flags.out + "/cells"); !made) return made.error();
  }
  sweep.started_at = core::utc_text(core::realtime_ns()).text;
  if (auto done = runner.run(); !done) return done.error();
  if (sweep.environment.commit.empty() && runner.server_error() && !interrupt.flag().load()) {
    return *runner.server_error();  // not a single cell was measured
  }
  if (auto saved = runner.save(); !saved) return saved.error();
  if (flags.out) {
    auto page = report::write_sweep_html(*flags.out + "/report.html", sweep);
    if (!page) return page.error();
  }
  if (flags.json) {
    const auto text = record::sweep_text(sweep);
    if (!text) return text.error();
    fmt::print("{}", text.value());
  } else {
    fmt::print("{}", sweep_table(sweep));
  }
  return exit_code(flags, sweep, runner.broke_a_rule());
}

}  // namespace prony::cli
