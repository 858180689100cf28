#include "prony/cli/sweep_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "prony/cli/bench_compat.hpp"
#include "prony/cli/bench_setup.hpp"

namespace prony::cli {
namespace {

constexpr int kTriesMax = 3;  // of a cell against a server that does not answer
}  // namespace

SweepRunner::SweepRunner(const SweepPlan& plan, const BenchFlags& flags, record::Sweep& sweep,
                         const std::atomic<bool>& interrupt,
                         std::function<void(std::string_view)> note)
    : plan_(plan), flags_(flags), sweep_(sweep), interrupt_(interrupt), note_(std::move(note)) {}

Result<void> SweepRunner::run() {
  for (size_t i = 0; i < sweep_.cells.size(); ++i) {
    if (sweep_.cells[i].resumed) continue;
    if (interrupt_.load()) break;
    if (auto done = run_cell(i); !done) return done;
    if (auto saved = save(); !saved) return saved;
    if (i + 1 < sweep_.cells.size()) pause();
  }
  target_.reset();  // its server ends before the results are shown
  return {};
}

std::unique_ptr<SweepTarget> SweepRunner::make_target(size_t index) const {
  SweepTarget::Options options;
  if (const size_t target = plan_.grid.cells[index].target; target != SIZE_MAX) {
    options.spec = plan_.grid.axes.front().targets[target];
  }
  if (flags_.out) options.log_folder = *flags_.out + "/targets";
  options.command_ready_ns = static_cast<core::Nanos>(flags_.sweep.target_ready_timeout_s * 1e9);
  options.interrupt = &interrupt_;
  options.note = note_;
  return std::make_unique<SweepTarget>(std::move(options));
}

Result<void> SweepRunner::run_cell(size_t index) {
  auto& cell = sweep_.cells[index];
  if (const size_t target = plan_.grid.cells[index].target; !target_ || target != target_index_) {
    target_.reset();  // before the next one starts: they may want the same port, or GPU
    target_ = make_target(index);
    target_index_ = target;
    target_gone_ = false;
  }
  if (target_gone_) {
    cell.status = record::CellStatus::kUnreachable;
    cell.error = server_error_->message;
    return {};
  }
  note_(fmt::format("cell {} of {}: {}", index + 1, sweep_.cells.size(), cell.slug));
  for (int tries = 1;; ++tries) {
    auto run = measure_cell(index);
    if (run.ok() && !(server_is_gone(run.value().record.metrics) && tries < kTriesMax)) {
      return keep(index, run.value());
    }
    if (interrupt_.load()) {
      cell.status = record::CellStatus::kInterrupted;
      return {};
    }
    if (run.ok()) continue;
    if (server_failed_ && tries < kTriesMax) continue;
    cell.error = run.error().message;
    cell.status = server_failed_ ? record::CellStatus::kUnreachable : record::CellStatus::kError;
    note_(cell.error);
    if (server_failed_) {
      target_gone_ = true;
      server_error_ = run.error();
    }
    return {};
  }
}

Result<load::BenchRun> SweepRunner::measure_cell(size_t index) {
  const auto& cell = plan_.cells[index];
  auto parsed = parse_run_flags(plan_.arguments, cell.again, plan_.server_of(index, flags_));
  if (!parsed) return parsed.error();
  auto& run = parsed.value().flags;
  if (auto filled = fill_defaults(run); !filled) return filled.error();
  const auto endpoint = target_->open(run);
  server_failed_ = !endpoint.ok() && endpoint.error().code == ErrorCode::kEnvironment;
  if (!endpoint) return endpoint.error();
  if (flags_.out) run.bench.row_folders.insert(run.bench.row_folders.begin(), *flags_.out);
  run.bench.metadata["sweep_cell"] = plan_.grid.cells[index].slug;
  run.bench.metadata[kSweepHashKey] = cell.hash;
  auto measured = measure(run, endpoint.value(), interrupt_, note_);
  if (!measured) return measured;
  // A file a cell: in vLLM's own names cells would meet.
  run.result_filename =
      plan_.grid.cells[index].slug + "." + run.result_filename.value_or("vllm.json");
  if (!run.result_dir) run.result_dir = flags_.out;
  if (const auto added = add_compat(run, measured.value()); !added) return added.error();
  return measured;
}

void SweepRunner::pause() const {
  // In pieces, so that Ctrl-C is seen.
  const core::Nanos end =
      core::monotonic_ns() + static_cast<core::Nanos>(flags_.sweep.pause_s * 1e9);
  while (!interrupt_.load() && core::monotonic_ns() < end) {
    core::MonotonicClock().sleep_until(
        std::min(end, core::monotonic_ns() + 100 * core::kNanosPerMilli));
  }
}

}  // namespace prony::cli
