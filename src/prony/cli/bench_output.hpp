// What `prony bench` shows and leaves: a table for people, files for everything else.
// Thread safety: functions, main thread.
#pragma once
#include <string>

#include "prony/cli/bench_flags.hpp"
#include "prony/core/result.hpp"
#include "prony/load/bench.hpp"
#include "prony/record/rows_file.hpp"

namespace prony::cli {

/// The record as text: what was loaded, how it went, every latency with its sample size, the
/// verdict. Failures are always there, also when there are none.
std::string bench_table(const record::Record& record);

/// The lines of it about intervals, Little's law and steadiness; none for what is unknown.
std::string statistics_lines(const record::Metrics& metrics);

/// Each term of --slo: its value, interval and verdict; empty without any.
std::string slo_lines(const core::Json& slo);
/// Latencies [ms] by turn of the conversations; empty without any.
std::string turn_and_stage_lines(const record::Metrics& metrics);
/// The two phases of --preset single-stream apart; empty for any other run.
std::string single_stream_lines(const record::Record& record);

/// record.json, requests.jsonl and report.html in `folder`, each as a whole or not at all.
/// Beside them what flags ask for: requests.csv, latencies.hlog, trace.json.
Result<void> write_bench_files(const BenchFlags& flags, const load::BenchRun& run);

/// Of the table: server, GPUs, energy; empty for a null section.
std::string telemetry_lines(const core::Json& telemetry);

/// What is kept of one run among many in `folder`: record.json last, so that a folder with a record
/// is whole; no page of its own.
Result<void> write_run_files(const BenchFlags& flags, const std::string& folder,
                             const load::BenchRun& run);

}  // namespace prony::cli
