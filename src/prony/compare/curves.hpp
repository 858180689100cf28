// The distribution functions of the page: of each latency and side, all runs pooled, thinned.
// Thread safety: pure functions.
#pragma once
#include <vector>

#include "prony/compare/input.hpp"
#include "prony/record/comparison.hpp"

namespace prony::compare {

/// Sides without rows have none.
std::vector<record::CompareCurve> make_curves(const std::vector<SideInput>& sides);

}  // namespace prony::compare
