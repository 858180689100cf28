// compare: sides of runs in, a record::Comparison out: how each side differs from the first, metric
// by metric, with an interval and a verdict. Definitions: docs/compare.md.
// Same inputs and seed give the same bits. Thread safety: pure functions.
#pragma once
#include <vector>

#include "prony/compare/input.hpp"
#include "prony/compare/rule.hpp"
#include "prony/record/comparison.hpp"

namespace prony::compare {

struct Options {
  double confidence = 0.95;
  uint64_t seed = 1;
  int replicates = 4999;
  std::vector<Rule> rules;
  bool allow_incomparable = false;
};

/// Requires two sides or more, each with a run (checked).
record::Comparison compare(const std::vector<SideInput>& sides, const Options& options);

/// For people, with a final newline.
std::string comparison_table(const record::Comparison& comparison);

}  // namespace prony::compare
