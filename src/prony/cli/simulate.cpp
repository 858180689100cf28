// prony simulate: a serving cluster on virtual time, its record like that of a measured run.
// docs/simulate.md is its manual.
#include <fmt/format.h>

#include "prony/cli/bench_output.hpp"
#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/cli/simulate_options.hpp"
#include "prony/cli/simulate_record.hpp"
#include "prony/core/file.hpp"
#include "prony/core/system.hpp"
#include "prony/sim/replicate.hpp"

namespace prony::cli {
namespace {

/// Beyond so many output tokens rows keep no instants of single tokens, and ITL is null.
constexpr int64_t kTokenEventsMax = 40'000'000;

Result<int> simulate(SimulateOptions& options) {
  auto plan = plan_simulation(options);
  if (!plan) return plan.error();
  const auto make_schedule = [&](uint64_t seed) {
    auto bench = options.load.bench;
    bench.seed = seed;
    return load::make_schedule(bench, plan->shape);
  };
  const auto first = make_schedule(plan->cluster.seed);
  if (!first) return first.error();
  int64_t tokens = 0;
  for (const auto& entry : first->entries) tokens += entry.output_tokens;
  plan->cluster.token_events = tokens * options.replications <= kTokenEventsMax;
  const int threads = options.threads > 0 ? static_cast<int>(options.threads)
                                          : static_cast<int>(core::allowed_cores().size());
  const core::Nanos begin = core::monotonic_ns();
  auto replications = sim::replicate(static_cast<int>(options.replications), threads, plan->cluster,
                                     plan->make_time, make_schedule);
  if (!replications) return replications.error();
  const double wall_s = core::to_seconds(core::monotonic_ns() - begin);
  auto run = simulated_run(options, *plan, *first, *replications, wall_s);
  if (!run) return run.error();
  if (options.load.out) {
    if (auto made = core::make_directories(*options.load.out); !made) return made.error();
    if (auto done = write_bench_files(options.load, *run); !done) return done.error();
  }
  if (options.json) {
    const auto text = record::record_text(run->record);
    if (!text) return text.error();
    fmt::print("{}", *text);
  } else {
    fmt::print("{}{}", bench_table(run->record), simulation_lines(run->record));
  }
  for (const auto& rule : run->broken_rules) fmt::print(stderr, "failed {}\n", rule);
  return run->broken_rules.empty() ? kExitOk : kExitFailed;
}

}  // namespace

int run_simulate(const Arguments& arguments) {
  SimulateOptions options;
  Flags flags("simulate", "a serving cluster on virtual time");
  declare(flags, options);
  const auto parsed = flags.parse(arguments);
  if (!parsed) return report_error("simulate", parsed.error());
  if (*parsed == Flags::Outcome::kHelp) {
    fmt::print("{}", flags.help());
    return kExitOk;
  }
  const auto code = simulate(options);
  return code.ok() ? *code : report_error("simulate", code.error());
}

}  // namespace prony::cli
