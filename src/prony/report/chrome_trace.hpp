// trace.json: a run in Chrome's trace format, for ui.perfetto.dev and chrome://tracing. Each
// request is an asynchronous slice from its intended start to its end, with what it did inside:
// queue (meant but not sent), send, prefill (to the first token), decode; counters show requests in
// flight and tokens a second. Instants are us since the first intended start. Source: "Trace Event
// Format", Google, events of phase b, e, C and M. Thread safety: functions any thread.
#pragma once
#include <cstdint>
#include <string>

#include "prony/core/result.hpp"
#include "prony/record/row_source.hpp"

namespace prony::report {

/// Requests drawn; of a longer run, every k-th, and the file's otherData says so: viewers hold a
/// few million events and no more.
inline constexpr int64_t kTraceRequestsMax = 50'000;

/// Error: kEnvironment.
Result<void> write_chrome_trace(const std::string& path, const record::RowSource& rows,
                                int64_t requests_max = kTraceRequestsMax);

}  // namespace prony::report
