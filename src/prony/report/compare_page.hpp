// The report of a comparison as a single HTML file that needs no network: what differs, an interval
// plot of every figure as a table that needs no script, and overlaid distribution functions, which
// the script of a run's page draws. Draws record::Comparison and computes no metric.
// Thread safety: pure functions.
#pragma once
#include <string>

#include "prony/core/result.hpp"
#include "prony/record/comparison.hpp"

namespace prony::report {

/// Error: kFailed if the comparison holds a number that is not finite.
Result<std::string> render_compare_html(const record::Comparison& comparison);
/// render_compare_html into a file that appears as a whole or not at all.
Result<void> write_compare_html(const std::string& path, const record::Comparison& comparison);

}  // namespace prony::report
