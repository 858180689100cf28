#include "prony/cli/serve_trace.hpp"

#include <fmt/format.h>

#include "prony/core/file.hpp"

namespace prony::cli {
namespace {

// Spans kept for the event file: some minutes of a small model, 5 MB of memory.
constexpr size_t kMaxEvents = 200'000;

}  // namespace

Result<ServeTrace> ServeTrace::start(const std::string& file, sched::Executor& executor) {
  ServeTrace started;
  if (file.empty()) return started;
  auto* cpu = dynamic_cast<engine::CpuExecutor*>(&executor);
  if (cpu == nullptr) {
    return invalid_argument(
        fmt::format("--trace: found device {}, expected cpu", executor.device()));
  }
  // Now, not after an hour of serving.
  if (const auto written = core::write_file_atomic(file, "{}\n"); !written) return written.error();
  started.file_ = file;
  started.executor_ = cpu;
  started.trace_ = std::make_unique<engine::OperatorTrace>(
      cpu->model(),
      engine::OperatorTrace::Numbers{.weights = cpu->dtype(), .bf16_rows = cpu->bf16_rows()},
      kMaxEvents);
  cpu->set_trace(started.trace_.get());
  return started;
}

Result<void> ServeTrace::finish() {
  if (trace_ == nullptr) return {};
  executor_->set_trace(nullptr);
  const auto ceilings = executor_->measure_ceilings();
  if (!ceilings) return ceilings.error();
  fmt::print(stderr, "{}", trace_->table(*ceilings));
  const auto text = core::write_json(trace_->chrome(*ceilings));
  if (!text) return text.error();
  return core::write_file_atomic(file_, *text);
}

}  // namespace prony::cli
