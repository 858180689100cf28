// Parsers of public traces beside Azure's: Mooncake (JSON Lines with prefix block ids) and BurstGPT
// (CSV). Both name file and line when they refuse a row.
// Source of the formats: kvcache-ai/Mooncake, FAST25-release/traces (512 tokens a hash id);
// HPMLL/BurstGPT, data (releases 1 to 3). Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "prony/core/result.hpp"
#include "prony/workload/trace.hpp"

namespace prony::workload {

/// One object a line: timestamp [ms], input_length, output_length and, perhaps, hash_ids: one id
/// for each 512 tokens begun; equal leading ids of two rows mean equal leading tokens. More members
/// are ignored. Rows whose prompt or answer is 0 tokens are skipped and counted.
Result<Trace> parse_mooncake_trace(std::string_view content, const std::string& path);

/// Columns Timestamp [s, decimals allowed], "Request tokens" and "Response tokens"; others (Model,
/// "Total tokens", "Log Type", "Session ID", "Elapsed time") are ignored. Failed requests, which
/// have 0 response tokens, are skipped and counted.
Result<Trace> parse_burstgpt_trace(std::string_view content, const std::string& path);

/// A decimal number of units as nanoseconds, exactly where it has at most 9 + log10(unit) decimals:
/// "1.5" of 1'000'000'000. Error-free: nullopt for anything that is no plain decimal >= 0 or does
/// not fit.
std::optional<int64_t> parse_decimal_ns(std::string_view text, int64_t unit_ns);

}  // namespace prony::workload
