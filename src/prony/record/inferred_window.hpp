// The window of a run read back from its files, found again from its rows: the record keeps the
// window's rule and length, not its instants. Thread safety: pure functions.
#pragma once
#include <optional>

#include "prony/record/metrics.hpp"
#include "prony/record/row_source.hpp"
#include "prony/record/summary.hpp"

namespace prony::record {

/// The window that `metrics` speak of, if the rule that they name gives one of their length; else
/// nullopt (a given window, or rows of another run).
std::optional<Window> inferred_window(const RowSource& rows, const Metrics& metrics);

}  // namespace prony::record
