// prony plan: the cheapest deployment of a model that holds an objective under a load, what can be
// traded against what, and why the others fail. docs/plan.md is its manual.
#include <fmt/format.h>

#include "prony/catalog/catalog.hpp"
#include "prony/cli/commands.hpp"
#include "prony/cli/plan_options.hpp"
#include "prony/core/clock.hpp"
#include "prony/plan/render.hpp"

namespace prony::cli {
namespace {

Result<int> run(const PlanOptions& options) {
  const auto question = question_of(options);
  if (!question) return question.error();
  const core::Nanos begin = core::monotonic_ns();
  const auto answer = plan::search(*question);
  if (!answer) return answer.error();
  const double elapsed_s = core::to_seconds(core::monotonic_ns() - begin);
  if (options.json) {
    core::Json json = plan::answer_json(*question, *answer);
    json["elapsed_s"] = elapsed_s;
    const auto text = core::write_json(json, 2);
    if (!text) return text.error();
    fmt::print("{}\n", *text);
  } else {
    fmt::print("{}", plan::answer_table(*question, *answer, static_cast<size_t>(options.lines)));
    fmt::print("\n{} predicted in {:.2f} s, {:.0f} configurations a second\n", answer->predicted,
               elapsed_s, static_cast<double>(answer->predicted) / elapsed_s);
  }
  return answer->feasible > 0 ? kExitOk : kExitFailed;
}

}  // namespace

int run_plan(const Arguments& arguments) {
  PlanOptions options;
  Flags flags("plan", "the cheapest deployment that holds an objective, and what can be traded");
  declare(flags, options);
  const auto parsed = flags.parse(arguments);
  if (!parsed) return report_error("plan", parsed.error());
  if (*parsed == Flags::Outcome::kHelp) {
    fmt::print("{}", flags.help());
    return kExitOk;
  }
  const auto code = run(options);
  return code ? *code : report_error("plan", code.error());
}

}  // namespace prony::cli
