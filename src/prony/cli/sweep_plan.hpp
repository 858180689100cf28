// SweepPlan: what `--sweep` asks for, all of it parsed and checked before anything is started: the
// grid, and for each cell its flags, the digest of its options and how long its load takes.
// Thread safety: a value and pure functions.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "prony/cli/run_flags.hpp"
#include "prony/load/sweep_grid.hpp"
#include "prony/record/sweep.hpp"

namespace prony::cli {

struct SweepPlan {
  struct Cell {
    std::vector<FlagValue> again;  // flags of this cell
    std::string hash;
    std::optional<double> load_s;
  };
  Arguments arguments;  // as the command got them
  load::SweepGrid grid;
  std::vector<Cell> cells;  // beside grid.cells

  /// The server of a cell, as it stands in digests.
  std::string server_of(size_t cell, const BenchFlags& flags) const;
};
/// Error: kInvalidArgument naming the axis or the flag.
Result<SweepPlan> plan_sweep(const Arguments& arguments, const BenchFlags& flags);

/// The document with every cell still to run.
record::Sweep make_sweep_document(const SweepPlan& plan, const BenchFlags& flags);

/// What --dry-run prints: cells, their flags and times.
std::string dry_run_text(const SweepPlan& plan, const record::Sweep& sweep, double pause_s);

/// The sweep as text for a terminal.
std::string sweep_table(const record::Sweep& sweep);

}  // namespace prony::cli
