// prony compare: how runs differ from a first one, with intervals, a verdict and rules that fail.
#include "prony/compare/compare.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/compare/curves.hpp"
#include "prony/core/file.hpp"
#include "prony/report/compare_page.hpp"
#include "prony/version.hpp"

namespace prony::cli {
namespace {

struct CompareFlags {
  std::vector<std::string> paths, baseline, candidate;
  std::string fail_if;
  std::optional<std::string> out;
  int64_t seed = 1, redraws = 4999;
  double confidence = 0.95;
  bool allow_incomparable = false, json = false;
};

Result<compare::Options> make_options(const CompareFlags& flags) {
  compare::Options options;
  if (!(flags.confidence >= 0.5 && flags.confidence <= 0.999)) {
    return invalid_argument(
        fmt::format("--confidence: found {}, expected 0.5 to 0.999", flags.confidence));
  }
  if (flags.redraws < 199 || flags.redraws > 99'999) {
    return invalid_argument(
        fmt::format("--redraws: found {}, expected 199 to 99999", flags.redraws));
  }
  if (flags.seed < 0) {
    return invalid_argument(fmt::format("--seed: found {}, expected 0 or more", flags.seed));
  }
  options.confidence = flags.confidence;
  options.seed = static_cast<uint64_t>(flags.seed);
  options.replicates = static_cast<int>(flags.redraws);
  options.allow_incomparable = flags.allow_incomparable;
  if (!flags.fail_if.empty()) {
    auto rules = compare::parse_rules(flags.fail_if);
    if (!rules) return rules.error();
    options.rules = std::move(*rules);
  }
  return options;
}

Result<std::vector<compare::SideInput>> load_sides(const CompareFlags& flags) {
  std::vector<std::vector<std::string>> groups;
  if (!flags.baseline.empty()) groups.push_back(flags.baseline);
  for (const auto& path : flags.paths) groups.push_back({path});
  if (!flags.candidate.empty()) groups.push_back(flags.candidate);
  if (groups.size() < 2) {
    return invalid_argument(fmt::format(
        "found {} side{}, expected two or more: a folder, record.json or requests.jsonl each",
        groups.size(), groups.size() == 1 ? "" : "s"));
  }
  std::vector<compare::SideInput> sides;
  for (const auto& group : groups) {
    auto side = compare::load_side(group);
    if (!side) return side.error();
    sides.push_back(std::move(*side));
  }
  compare::distinguish(sides);
  return sides;
}

Result<int> run(const CompareFlags& flags) {
  const auto options = make_options(flags);
  if (!options) return options.error();
  const auto sides = load_sides(flags);
  if (!sides) return sides.error();
  auto comparison = compare::compare(*sides, *options);
  comparison.version = kVersion;
  const auto text = record::comparison_text(comparison);
  if (!text) return text.error();
  if (flags.out) {
    if (auto made = core::make_directories(*flags.out); !made) return made.error();
    auto written = core::write_file_atomic(*flags.out + "/compare.json", *text);
    if (!written) return written.error();
    comparison.curves = compare::make_curves(*sides);
    written = report::write_compare_html(*flags.out + "/compare.html", comparison);
    if (!written) return written.error();
  }
  std::fputs((flags.json ? *text : compare::comparison_table(comparison)).c_str(), stdout);
  if (comparison.refused()) {
    fmt::print(stderr,
               "prony compare: the sides are not comparable, so no verdict is given "
               "(--allow-incomparable gives one all the same)\n");
  }
  if (comparison.broken()) fmt::print(stderr, "prony compare: a rule of --fail-if is broken\n");
  return comparison.broken() || comparison.refused() ? kExitFailed : kExitOk;
}

}  // namespace

int run_compare(const Arguments& arguments) {
  CompareFlags options;
  Flags flags("compare", "how runs differ from a first one, with intervals and a verdict");
  flags.positional(
      "side", options.paths,
      "the baseline, then what is compared with it: a folder that bench wrote, its "
      "record.json, requests.jsonl alone, or a folder of such folders (repeated runs)");
  flags.group("Sides")
      .list("--baseline", options.baseline, "several runs of the first side")
      .list("--candidate", options.candidate, "several runs of the last side")
      .toggle("--allow-incomparable", options.allow_incomparable,
              "give verdicts although runs are invalid or their workloads differ");
  flags.group("Judgement")
      .text("--fail-if", options.fail_if,
            "changes that fail, e.g. \"ttft_p99>+5%, output_throughput<-3%\": exit code 1 where "
            "one is certain")
      .number("--confidence", options.confidence, "of intervals, verdicts and rules")
      .integer("--redraws", options.redraws, "of the bootstrap")
      .integer("--seed", options.seed, "of the bootstrap");
  flags.group("Output")
      .text("--out", options.out, "folder for compare.json and compare.html")
      .toggle("--json", options.json, "one JSON document on stdout");
  const auto outcome = flags.parse(arguments);
  if (!outcome) return report_error("compare", outcome.error());
  if (outcome.value() == Flags::Outcome::kHelp) {
    std::fputs(flags.help().c_str(), stdout);
    return kExitOk;
  }
  const auto code = run(options);
  return code ? code.value() : report_error("compare", code.error());
}

}  // namespace prony::cli
