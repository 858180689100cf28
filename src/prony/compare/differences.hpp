// What two sides differ in, apart from their results: system, workload, environment, and how the
// metrics were made. Some of it makes their figures figures of different things.
// Thread safety: pure functions.
#pragma once
#include <vector>

#include "prony/compare/input.hpp"
#include "prony/record/comparison.hpp"

namespace prony::compare {

/// Of the first runs of both sides that have a record; empty where one has none. The incomparable
/// ones first.
std::vector<record::CompareDifference> find_differences(const SideInput& baseline,
                                                        const SideInput& candidate);

/// Reasons why the two may not be compared: runs that are not valid or were interrupted, and the
/// differences that are incomparable.
std::vector<std::string> obstacles(const SideInput& baseline, const SideInput& candidate,
                                   const std::vector<record::CompareDifference>& differences);

}  // namespace prony::compare
