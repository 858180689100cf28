#include "prony/cli/bench_output.hpp"
#include "prony/core/clock.hpp"
#include "prony/core/file.hpp"
#include "prony/record/rows_file.hpp"
#include "prony/report/chrome_trace.hpp"
#include "prony/report/hdr_log.hpp"
#include "prony/report/report.hpp"
#include "prony/report/rows_csv.hpp"

namespace prony::cli {

namespace {

// What --save-csv, --save-hdr and --save-trace ask for.
Result<void> write_extra_files(const BenchFlags& flags, const std::string& folder,
                               const load::BenchRun& run) {
  if (flags.save_csv) {
    if (auto done = report::write_rows_csv(folder + "/requests.csv", run.rows); !done) return done;
  }
  if (flags.save_hdr) {
    const auto population = report::population(run.rows, run.record.metrics, run.summary);
    const auto offset_ns = core::realtime_ns() - core::monotonic_ns();
    const auto done =
        report::write_hdr_log(folder + "/latencies.hlog", run.rows, population, offset_ns);
    if (!done) return done;
  }
  if (flags.save_trace) {
    if (auto done = report::write_chrome_trace(folder + "/trace.json", run.rows); !done) {
      return done;
    }
  }
  return {};
}

}  // namespace

Result<void> write_run_files(const BenchFlags& flags, const std::string& folder,
                             const load::BenchRun& run) {
  if (auto made = core::make_directories(folder); !made) return made;
  if (!flags.sweep.no_requests) {
    const record::RowFormat format{flags.bench.save_detailed, flags.bench.save_text};
    auto done = record::write_rows(folder + "/requests.jsonl", run.rows, format);
    if (!done) return done;
  }
  if (auto done = write_extra_files(flags, folder, run); !done) return done;
  auto done = record::write_record(folder + "/record.json", run.record);
  return done.ok() ? run.rows.status() : done;
}

Result<void> write_bench_files(const BenchFlags& flags, const load::BenchRun& run) {
  const auto& folder = *flags.out;
  if (auto made = core::make_directories(folder); !made) return made;
  if (auto done = record::write_record(folder + "/record.json", run.record); !done) return done;
  const record::RowFormat format{flags.bench.save_detailed, flags.bench.save_text};
  if (auto done = record::write_rows(folder + "/requests.jsonl", run.rows, format); !done) {
    return done;
  }
  if (auto done = write_extra_files(flags, folder, run); !done) return done;
  return report::write_html(folder + "/report.html", run.record, run.rows, {run.summary});
}

}  // namespace prony::cli
