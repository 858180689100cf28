// The operator trace of `prony serve --trace FILE`: on from start() to finish(), which reports.
// Thread safety: main thread, before the first step and after the last.
#pragma once
#include <memory>
#include <string>

#include "prony/core/result.hpp"
#include "prony/engine/cpu_executor.hpp"
#include "prony/engine/operator_trace.hpp"

namespace prony::cli {

class ServeTrace {
 public:
  /// Without a file there is no trace. `executor` must outlive it. Error: kInvalidArgument if it is
  /// not the CPU's, kEnvironment if `file` cannot be written.
  static Result<ServeTrace> start(const std::string& file, sched::Executor& executor);

  /// Measures the ceilings, prints the table on stderr, writes the file.
  Result<void> finish();

 private:
  std::string file_;
  engine::CpuExecutor* executor_ = nullptr;
  std::unique_ptr<engine::OperatorTrace> trace_;  // the executor keeps its address
};

}  // namespace prony::cli
