// SweepRunner: runs the cells of a plan one after the other and keeps what comes out. A cell whose
// options do not fit is a cell with that error; a server that is gone costs the rest of its block,
// after a bounded number of tries. What is on the disk after each cell is enough to go on from.
// Thread safety: main thread.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "prony/cli/sweep_plan.hpp"
#include "prony/cli/sweep_target.hpp"
#include "prony/load/bench.hpp"

namespace prony::cli {

/// The key of a record's metadata under which a cell's digest of options stands.
inline constexpr const char* kSweepHashKey = "sweep_options";
/// Nothing came back at all: the server has gone, or was never there.
bool server_is_gone(const record::Metrics& metrics);

class SweepRunner {
 public:
  SweepRunner(const SweepPlan& plan, const BenchFlags& flags, record::Sweep& sweep,
              const std::atomic<bool>& interrupt, std::function<void(std::string_view)> note);

  /// Marks the cells that `out` already has with the same options.
  void resume();
  /// Error: kEnvironment if a file cannot be written.
  Result<void> run();
  /// sweep.json in the folder, if there is one.
  Result<void> save() const;
  /// A rule of the user that any cell broke.
  bool broke_a_rule() const { return broke_a_rule_; }
  /// Of the last server that did not answer.
  const std::optional<Error>& server_error() const { return server_error_; }

 private:
  Result<void> run_cell(size_t index);
  std::unique_ptr<SweepTarget> make_target(size_t index) const;
  Result<load::BenchRun> measure_cell(size_t index);
  Result<void> keep(size_t index, load::BenchRun& run);
  void pause() const;

  const SweepPlan& plan_;
  const BenchFlags& flags_;
  record::Sweep& sweep_;
  const std::atomic<bool>& interrupt_;
  std::function<void(std::string_view)> note_;
  std::unique_ptr<SweepTarget> target_;
  size_t target_index_ = SIZE_MAX;
  bool target_gone_ = false;
  bool server_failed_ = false;  // the last open()
  bool broke_a_rule_ = false;
  std::optional<Error> server_error_;
};

}  // namespace prony::cli
