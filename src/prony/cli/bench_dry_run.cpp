// The schedule of a bench on its own: --save-schedule and --dry-run.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "prony/cli/bench_flags.hpp"
#include "prony/cli/bench_workload.hpp"
#include "prony/load/bench_schedule.hpp"
#include "prony/workload/schedule_report.hpp"

namespace prony::cli {

Result<void> save_schedule(const BenchFlags& o) {
  if (!o.workload.save_schedule) return {};
  const auto shape = load::load_shape(o.bench);
  if (!shape) return shape.error();
  const auto schedule = load::make_schedule(o.bench, *shape);
  if (!schedule) return schedule.error();
  return workload::write_schedule(*schedule, *o.workload.save_schedule);
}

Result<int> dry_run(const BenchFlags& o) {
  const auto shape = load::load_shape(o.bench);
  if (!shape) return shape.error();
  std::optional<workload::ScheduleOptions> options;
  if (o.bench.dataset != "schedule") {
    auto made = load::make_schedule_options(o.bench, *shape);
    if (!made) return made.error();
    options = std::move(made).value();
  }
  const auto schedule =
      options ? workload::generate_schedule(*options) : load::make_schedule(o.bench, *shape);
  if (!schedule) return schedule.error();
  if (o.workload.save_schedule) {
    const auto done = workload::write_schedule(*schedule, *o.workload.save_schedule);
    if (!done) return done.error();
  }
  const auto report = workload::report_schedule(*schedule, options ? &*options : nullptr);
  if (!o.json) {
    fmt::print("{}", workload::schedule_report_text(report));
    return kExitOk;
  }
  const auto text = core::write_json(workload::schedule_report_to_json(report), 2);
  if (!text) return text.error();
  fmt::print("{}\n", *text);
  return kExitOk;
}

}  // namespace prony::cli
