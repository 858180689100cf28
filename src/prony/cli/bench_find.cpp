// prony bench --find: the most that a server can take and still keep an objective.
#include <fmt/format.h>

#include <cstdio>

#include "prony/cli/bench_sweep.hpp"
#include "prony/cli/interrupt.hpp"
#include "prony/cli/search_runner.hpp"
#include "prony/core/file.hpp"
#include "prony/core/system.hpp"

namespace prony::cli {
namespace {

void note(std::string_view text) {
  fmt::print(stderr, "prony bench: {}\n", text);
}

}  // namespace

Result<int> run_search(const Arguments& arguments, BenchFlags& flags, const core::Group& group) {
  if (!group.alone()) {
    return invalid_argument(fmt::format("--find: found {} processes, expected one", group.size()));
  }
  const auto plan = plan_search(arguments, flags);
  if (!plan) return plan.error();
  const auto text = search_plan_text(plan.value(), flags, flags.sweep.find_start);
  if (flags.workload.dry_run) {
    fmt::print("{}\n", text);
    return kExitOk;
  }
  note(text);
  if (flags.out) {
    if (auto made = core::make_directories(*flags.out + "/probes"); !made) return made.error();
  }
  auto search = make_search_document(plan.value(), flags);
  search.started_at = core::utc_text(core::realtime_ns()).text;
  const Interrupt interrupt;
  SearchRunner runner(plan.value(), flags, search, interrupt.flag(), note);
  if (auto done = runner.run(); !done) return done.error();
  if (flags.json) {
    const auto json = record::search_text(search);
    if (!json) return json.error();
    fmt::print("{}", json.value());
  } else {
    fmt::print("{}", search_table(search));
  }
  const bool ended = search.end != "interrupted" && search.end != "server_gone";
  return ended && search.lower ? kExitOk : kExitFailed;
}

}  // namespace prony::cli
