#include "prony/cli/sweep_plan.hpp"

#include <fmt/format.h>

#include <set>

namespace prony::cli {
namespace {

Result<void> check_sweep_flags(const BenchFlags& flags) {
  const auto& sweep = flags.sweep;
  if (sweep.num_runs < 1 || sweep.num_runs > 1000) {
    return invalid_argument(
        fmt::format("--num-runs: found {}, expected 1 to 1000", sweep.num_runs));
  }
  if (!(sweep.pause_s >= 0 && sweep.pause_s <= 1e6)) {
    return invalid_argument(
        fmt::format("--sweep-pause: found {:g}, expected seconds, 0 or more", sweep.pause_s));
  }
  if (!(sweep.target_ready_timeout_s > 0 && sweep.target_ready_timeout_s <= 1e6)) {
    return invalid_argument(fmt::format("--target-ready-timeout: found {:g}, expected seconds",
                                        sweep.target_ready_timeout_s));
  }
  if (sweep.resume && !flags.out) {
    return invalid_argument("--resume: found no --out, expected the folder of the sweep");
  }
  return {};
}

}  // namespace

std::string SweepPlan::server_of(size_t cell, const BenchFlags& flags) const {
  const size_t target = grid.cells[cell].target;
  if (target == SIZE_MAX) return flags.base_url.value_or("prony serve");
  const auto& spec = grid.axes.front().targets[target];
  return spec.command.empty() ? spec.url : "cmd:" + spec.command;
}

Result<SweepPlan> plan_sweep(const Arguments& arguments, const BenchFlags& flags) {
  if (auto checked = check_sweep_flags(flags); !checked) return checked.error();
  std::vector<load::SweepAxis> axes;
  std::set<std::string> used;
  std::vector<std::string> axis_flags;
  for (const auto& text : flags.sweep.axes) {
    auto axis = load::parse_sweep_axis(text);
    if (!axis) return axis.error();
    if (!axis.value().is_target()) {
      const auto flag = axis_flag(axis.value().name);
      if (!flag) return flag.error();
      if (!used.insert(flag.value()).second) {
        return invalid_argument(
            fmt::format("--sweep {}: another axis sets {} already", text, flag.value()));
      }
    }
    axes.push_back(std::move(axis).value());
  }
  auto grid = load::make_sweep_grid(std::move(axes), flags.sweep.num_runs, flags.bench.seed);
  if (!grid) return grid.error();
  SweepPlan plan;
  plan.arguments = arguments;
  plan.grid = std::move(grid).value();
  for (const auto& axis : plan.grid.axes) {
    axis_flags.push_back(axis.is_target() ? "" : axis_flag(axis.name).value());
  }
  for (size_t i = 0; i < plan.grid.cells.size(); ++i) {
    const auto& place = plan.grid.cells[i];
    SweepPlan::Cell cell;
    cell.again.emplace_back("--seed", std::to_string(place.seed));  // an axis `seed` comes behind
    for (size_t axis = 0; axis < axis_flags.size(); ++axis) {
      if (axis_flags[axis].empty()) continue;
      cell.again.emplace_back(axis_flags[axis], plan.grid.value(place, axis));
    }
    const auto run = parse_run_flags(arguments, cell.again, plan.server_of(i, flags));
    if (!run) {
      return Error{run.error().code, fmt::format("{} (cell {})", run.error().message, place.slug)};
    }
    cell.hash = run.value().hash;
    cell.load_s = load_seconds(run.value().flags.bench);
    plan.cells.push_back(std::move(cell));
  }
  return plan;
}

record::Sweep make_sweep_document(const SweepPlan& plan, const BenchFlags& flags) {
  record::Sweep out;
  for (const auto& axis : plan.grid.axes) {
    out.axes.push_back({axis.name, axis.values, axis.is_target()});
    for (const auto& target : axis.targets) {
      out.targets.push_back({target.name, target.url, target.command});
    }
  }
  for (size_t i = 0; i < plan.cells.size(); ++i) {
    const auto& place = plan.grid.cells[i];
    record::SweepCell cell;
    cell.slug = place.slug;
    for (size_t axis = 0; axis < plan.grid.axes.size(); ++axis) {
      cell.values.push_back(plan.grid.value(place, axis));
    }
    cell.run = place.run;
    cell.seed = place.seed;
    cell.options_hash = plan.cells[i].hash;
    out.cells.push_back(std::move(cell));
  }
  out.num_runs = plan.grid.num_runs;
  out.seed = flags.bench.seed;
  out.label = flags.bench.label;
  out.command = flags.bench.command;
  return out;
}

}  // namespace prony::cli
