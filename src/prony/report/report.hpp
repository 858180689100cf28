// The report of one run as a single HTML file that needs no network, no server and, but for its
// figures, no script. Draws a Record and its rows; computes no metric that the Record lacks (the
// points of its figures come from series.hpp, by the record's own definitions).
// Nothing in a run can become markup or script: see html.hpp, and the page's own policy allows only
// the one script that was built into this program.
// Thread safety: pure functions.
#pragma once
#include <optional>
#include <string>

#include "prony/core/result.hpp"
#include "prony/record/record.hpp"
#include "prony/record/row_source.hpp"
#include "prony/record/summary.hpp"

namespace prony::report {

struct Options {
  /// The options that summarize() had, so that the figures show the same population and window.
  /// nullopt (a record read back from a file): inferred from metrics.window_rule, and the window is
  /// drawn only if it agrees with metrics.window_s.
  std::optional<record::SummaryOptions> summary;
};

/// `rows` may be empty (a prediction; a record without its requests.jsonl): then the page says so
/// and has its cards and tables. Rows without events (requests.jsonl without --save-detailed) give
/// every figure but the one of ITL. Pages stay small at any number of rows: series are thinned, and
/// each figure says how many of its points it shows.
/// Error: kFailed if the record holds a number that is not finite.
Result<std::string> render_html(const record::Record& record, const record::RowSource& rows,
                                const Options& options);
/// render_html into a file that appears as a whole or not at all.
Result<void> write_html(const std::string& path, const record::Record& record,
                        const record::RowSource& rows, const Options& options);

/// False if this program was built without the figures (PRONY_WEB=OFF, or npm out of reach).
bool has_figures();

}  // namespace prony::report
