#include "prony/cli/bench_output.hpp"
#include "prony/core/file.hpp"
#include "prony/record/rows_file.hpp"
#include "prony/report/report.hpp"

namespace prony::cli {

Result<void> write_bench_files(const std::string& folder, const load::BenchRun& run,
                               const record::RowFormat& format) {
  if (auto made = core::make_directories(folder); !made) return made;
  if (auto done = record::write_record(folder + "/record.json", run.record); !done) return done;
  if (auto done = record::write_rows(folder + "/requests.jsonl", run.rows, format); !done) {
    return done;
  }
  return report::write_html(folder + "/report.html", run.record, run.rows, {run.summary});
}

}  // namespace prony::cli
