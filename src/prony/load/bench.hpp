// Bench: one measured run from options to Record: connections and prompts ahead, warm-up, load,
// summary, self-check. Prints nothing; the command shows what it returns.
// Thread safety: one run at a time a thread; `interrupt` may be set from anywhere.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/group.hpp"
#include "prony/core/result.hpp"
#include "prony/load/bench_options.hpp"
#include "prony/load/driver.hpp"
#include "prony/load/endpoint.hpp"
#include "prony/record/record.hpp"
#include "prony/record/row_store.hpp"
#include "prony/record/slo_verdict.hpp"
#include "prony/record/summary.hpp"

namespace prony::load {

struct BenchHooks {
  const std::atomic<bool>* interrupt = nullptr;
  Driver::Progress progress;                   // of the measured load
  std::function<void(std::string_view)> note;  // lines worth telling while it runs
  core::Group* group = nullptr;                // the processes of this run; null: this one alone
};

struct BenchRun {
  record::Record record;
  record::RowStore rows;
  record::SummaryOptions summary;  // that gave record.metrics
  /// Rules of the user that the run broke, one line each; those that could not be judged.
  std::vector<std::string> broken_rules, undecided_rules;
};

/// With several processes the first one's has the record and all rows, the others' nothing.
/// Error: kInvalidArgument for options that do not fit, kEnvironment for limits of this host.
Result<BenchRun> run_bench(const BenchOptions& options, const Endpoint& endpoint,
                           std::shared_ptr<const workload::PromptBuilder> prompts,
                           const BenchHooks& hooks);

/// The rules of --slo, --fail-if and --max-error-rate against `metrics`.
void judge(const BenchOptions& options, const record::Metrics& metrics, BenchRun& run);

}  // namespace prony::load
