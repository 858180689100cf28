// SweepGrid: the cells of a sweep, in the order they run: targets slowest, so that a server is
// started once; within a target all cells once, then all again (--num-runs), so that a drift of the
// machine shows as a spread between runs and not as a difference between cells; axes in the order
// given, the last one fastest.
// The seed of a cell comes from the run's seed, its coordinates without the target and the number
// of its run: two targets get the same load, and a grid that grows keeps the seeds it had.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/load/sweep_axis.hpp"

namespace prony::load {

inline constexpr size_t kSweepCellsMax = 100'000;

struct SweepCellPlan {
  std::vector<size_t> at;    // index into values, an axis
  int64_t run = 1;           // 1 to num_runs
  std::string slug;          // "target=fp16,concurrency=4,run=1": folder name, unique
  uint64_t seed = 0;         // 32 bits
  size_t target = SIZE_MAX;  // index into the target axis' targets; SIZE_MAX: no such axis
};

struct SweepGrid {
  std::vector<SweepAxis> axes;  // the target axis first
  int64_t num_runs = 1;
  std::vector<SweepCellPlan> cells;

  const std::string& value(const SweepCellPlan& cell, size_t axis) const {
    return axes[axis].values[cell.at[axis]];
  }
};

/// Error: kInvalidArgument for an axis given twice, or more than kSweepCellsMax cells.
Result<SweepGrid> make_sweep_grid(std::vector<SweepAxis> axes, int64_t num_runs, uint64_t seed);

}  // namespace prony::load
