#include "prony/load/sweep_grid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/core/hash.hpp"

namespace prony::load {
namespace {

constexpr size_t kSlugBytesMax = 200;  // a folder name may have 255

SweepCellPlan make_cell(const SweepGrid& grid, std::vector<size_t> at, int64_t run, uint64_t seed) {
  SweepCellPlan cell;
  cell.at = std::move(at);
  cell.run = run;
  std::vector<std::string> load;  // what the target does not decide
  for (size_t axis = 0; axis < grid.axes.size(); ++axis) {
    const auto text = fmt::format("{}={}", grid.axes[axis].name, grid.value(cell, axis));
    cell.slug += (cell.slug.empty() ? "" : ",") + text;
    if (grid.axes[axis].is_target()) {
      cell.target = cell.at[axis];
    } else {
      load.push_back(text);
    }
  }
  if (grid.num_runs > 1) cell.slug += fmt::format(",run={}", run);
  std::sort(load.begin(), load.end());  // the order of the axes decides nothing
  core::Fnv1a hash;
  hash.add(seed);
  for (const auto& text : load) {
    hash.add(text);
    hash.add_byte(0);
  }
  hash.add(static_cast<uint64_t>(run));
  cell.seed = hash.value() >> 32;
  return cell;
}

}  // namespace

Result<SweepGrid> make_sweep_grid(std::vector<SweepAxis> axes, int64_t num_runs, uint64_t seed) {
  SweepGrid grid;
  grid.num_runs = num_runs;
  std::stable_partition(axes.begin(), axes.end(),
                        [](const auto& axis) { return axis.is_target(); });
  size_t points = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (axes[i].name == axes[j].name) {
        return invalid_argument(fmt::format("--sweep {}: given twice", axes[i].name));
      }
    }
    points *= axes[i].values.size();
    if (points * static_cast<size_t>(num_runs) > kSweepCellsMax) {
      return invalid_argument(fmt::format("--sweep: found more than {} cells", kSweepCellsMax));
    }
  }
  grid.axes = std::move(axes);
  const size_t blocks = grid.axes.front().is_target() ? grid.axes.front().values.size() : 1;
  for (size_t block = 0; block < blocks; ++block) {
    for (int64_t run = 1; run <= num_runs; ++run) {
      for (size_t point = 0; point < points / blocks; ++point) {
        std::vector<size_t> at(grid.axes.size());
        size_t rest = block * (points / blocks) + point;  // mixed radix, the last axis fastest
        for (size_t axis = grid.axes.size(); axis-- > 0;) {
          at[axis] = rest % grid.axes[axis].values.size();
          rest /= grid.axes[axis].values.size();
        }
        grid.cells.push_back(make_cell(grid, std::move(at), run, seed));
        if (grid.cells.back().slug.size() > kSlugBytesMax) {
          return invalid_argument(
              fmt::format("--sweep: the name of a cell is longer than {} bytes: {}", kSlugBytesMax,
                          grid.cells.back().slug));
        }
      }
    }
  }
  return grid;
}

}  // namespace prony::load
