#include "prony/cli/sweep_flags.hpp"

#include <algorithm>
#include <span>

namespace prony::cli {
namespace {

constexpr std::string_view kToggles[] = {"--dry-run",  "--resume",   "--no-requests", "--json",
                                         "--save-csv", "--save-hdr", "--save-trace"};
constexpr std::string_view kSingles[] = {"--num-runs", "--sweep-pause",    "--target-ready-timeout",
                                         "--find",     "--find-precision", "--find-start",
                                         "--find-max", "--find-probes",    "--out"};
constexpr std::string_view kList = "--sweep";

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void declare_sweep(Flags& flags, SweepFlags& o) {
  flags.group("Many runs")
      .list("--sweep", o.axes,
            "AXIS=VALUES, repeatable, a grid: concurrency=1:128:x2 input-len=32,512 "
            "target=fp16=URL,int4=cmd:COMMAND; an axis is any flag that takes a number")
      .integer("--num-runs", o.num_runs, "runs of each cell")
      .toggle("--resume", o.resume, "cells that --out already has, with the same options, are kept")
      .number("--sweep-pause", o.pause_s, "between runs [s]")
      .toggle("--no-requests", o.no_requests, "of a run keep record.json without requests.jsonl")
      .number("--target-ready-timeout", o.target_ready_timeout_s,
              "for a server that a target's command starts [s]")
      .choice("--find", o.find, {"max-rate", "max-concurrency"},
              "the most that keeps every term of --slo")
      .text("--find-precision", o.find_precision, "width of the answer's interval to stop at")
      .number("--find-start", o.find_start, "first rate or concurrency; none: asks the server")
      .number("--find-max", o.find_max, "go no higher")
      .integer("--find-probes", o.find_probes, "at most so many runs");
}

std::vector<std::string> without_sweep_flags(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  bool in_list = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& argument = arguments[i];
    const auto at = argument.find('=');
    const auto name = std::string_view(argument).substr(0, at);
    if (argument.starts_with("--")) in_list = false;
    if (in_list || has(kToggles, name)) continue;
    if (has(kSingles, name)) {
      if (at == std::string::npos) ++i;
    } else if (name == kList) {
      in_list = true;
    } else {
      out.push_back(argument);
    }
  }
  return out;
}

bool is_sweep_flag(std::string_view name) {
  return has(kToggles, name) || has(kSingles, name) || name == kList;
}

}  // namespace prony::cli
