// prony bench: load an endpoint and measure it. Without --base-url, one of our own is started.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "prony/cli/bench_compat.hpp"
#include "prony/cli/bench_flags.hpp"
#include "prony/cli/bench_group.hpp"
#include "prony/cli/bench_output.hpp"
#include "prony/cli/bench_setup.hpp"
#include "prony/cli/bench_sweep.hpp"
#include "prony/cli/commands.hpp"
#include "prony/cli/interrupt.hpp"
#include "prony/core/file.hpp"
#include "prony/load/bench.hpp"
#include "prony/record/rows_file.hpp"

namespace prony::cli {
namespace {

void note(std::string_view text) {
  fmt::print(stderr, "prony bench: {}\n", text);
}

int exit_code(const BenchFlags& flags, const load::BenchRun& run) {
  for (const auto& rule : run.undecided_rules) note("cannot judge " + rule);
  for (const auto& rule : run.broken_rules) note("failed " + rule);
  const auto& record = run.record;
  if (const auto kept = run.rows.status(); !kept) {
    note(kept.error().message);
    return kExitEnvironment;
  }
  const bool invalid = !record.validity.valid && flags.on_invalid == "fail";
  if (record.metrics.completed.value_or(0) == 0) {
    note("no request completed");
    bool told = false;
    run.rows.for_each([&](const record::RequestRow& row) {
      if (row.error.empty() || std::exchange(told, true)) return;
      note(fmt::format("the first error: {}: {}", status_name(row.status), row.error));
    });
    return kExitFailed;
  }
  if (invalid) {
    note(fmt::format("the run is invalid: {} (--on-invalid warn accepts it)",
                     record.validity.reasons.front()));
  }
  return record.run.interrupted || invalid || !run.broken_rules.empty() ? kExitFailed : kExitOk;
}

Result<int> bench(BenchFlags& flags, core::Group& group) {
  if (auto shared = share_flags(group, flags); !shared) return shared.error();
  if (auto filled = fill_defaults(flags); !filled) return filled.error();
  if (flags.workload.dry_run) return dry_run(flags);
  if (auto saved = save_schedule(flags); !saved) return saved.error();
  if (flags.out) {  // now, not after an hour of load
    if (auto made = core::make_directories(*flags.out); !made) return made.error();
  }
  const Interrupt interrupt;
  std::unique_ptr<ChildProcess> server;
  if (!flags.base_url) {
    auto started = start_server(flags, interrupt.flag());
    if (!started) return started.error();
    server = std::move(started).value();
  }
  const auto endpoint = load::open_endpoint(flags.target, note, &interrupt.flag());
  if (!endpoint) return endpoint.error();
  auto run = measure(flags, endpoint.value(), interrupt.flag(), note, &group);
  if (!run) return run.error();
  group.leave();
  if (!group.is_first()) return kExitOk;
  if (server && !server->running()) note("prony serve ended before the run did");
  const auto result = add_compat(flags, run.value());
  if (!result) return result.error();
  if (!result.value().empty()) note("wrote " + result.value());
  if (flags.out) {
    if (auto done = write_bench_files(flags, run.value()); !done) return done.error();
  }
  if (flags.json) {
    const auto text = record::record_text(run.value().record);
    if (!text) return text.error();
    fmt::print("{}", text.value());
  } else {
    fmt::print("{}{}", bench_table(run.value().record), compat_table(run.value().record.compat));
  }
  return exit_code(flags, run.value());
}

}  // namespace

int run_bench(const Arguments& arguments) {
  BenchFlags options;
  Flags flags("bench", "load an endpoint and measure TTFT, TPOT, ITL, E2E, goodput and errors");
  declare(flags, options);
  const auto parsed = flags.parse(arguments);
  if (!parsed) return report_error("bench", parsed.error());
  if (parsed.value() == Flags::Outcome::kHelp) {
    fmt::print("{}", flags.help());
    return kExitOk;
  }
  if (const auto ok = resolve(arguments, options); !ok) return report_error("bench", ok.error());
  auto group = open_group();
  if (!group) return report_error("bench", group.error());
  const auto code = options.sweep.is_search()  ? run_search(arguments, options, group.value())
                    : options.sweep.is_sweep() ? run_sweep(arguments, options, group.value())
                                               : bench(options, group.value());
  return code.ok() ? code.value() : report_group_error(group.value(), code.error());
}

}  // namespace prony::cli
