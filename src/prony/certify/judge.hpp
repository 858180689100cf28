// Judging: what a client measured of a run against what the server says it served, joined by
// X-Request-Id on one monotonic clock. Thread safety: pure functions.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "prony/certify/cases.hpp"
#include "prony/certify/verdict.hpp"
#include "prony/load/bench.hpp"
#include "prony/mock/stamps.hpp"

namespace prony::certify {

/// One run, from both sides.
struct Session {
  load::BenchRun run;
  std::vector<record::RequestRow> rows;  // of the run
  std::vector<mock::AnswerStamps> served;
};

/// Errors of arrival [ms]: the client's stamp of an event - the instant before the system call that
/// wrote it, so 0 is perfect and the call itself (some 10 us) is in it.
struct Arrivals {
  std::vector<double> first;                   // of the first token of each request
  std::vector<double> last;                    // of its last
  std::vector<double> served_gaps, read_gaps;  // between the events of a request
  int64_t unmatched = 0;   // requests that one side knows and the other does not
  int64_t miscounted = 0;  // requests whose events are not as many as the writes
};
Arrivals join(const Session& session);

/// The verdict on a run against a fault. `summary`: of the mock's table.
Verdict judge_fault(const FaultCase& fault, std::string_view summary, const Session& session);

/// Most answers at one instant, from the server's stamps: from the receipt to the last write.
int64_t most_in_flight(const std::vector<mock::AnswerStamps>& served);

}  // namespace prony::certify
