#include "prony/certify/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "prony/record/row_metrics.hpp"
#include "prony/stats/quantile.hpp"

namespace prony::certify {
namespace {

using record::RequestRow;
using record::Status;

/// A run that a time-out ends may last so much longer than it: the loop looks every 25 ms, and the
/// host may be busy.
constexpr double kTimeoutGraceMs = 400;
/// No arrival may lie before its write; conversion between clocks is good to well below this.
constexpr double kEarlyMs = 0.05;

using ById = std::unordered_map<std::string_view, const mock::AnswerStamps*>;

/// The last answer of each id: a request may have been sent again.
ById by_id(const std::vector<mock::AnswerStamps>& served) {
  ById map;
  for (const auto& stamps : served) {
    const auto [at, fresh] = map.emplace(stamps.id, &stamps);
    if (!fresh && stamps.t_received_ns > at->second->t_received_ns) at->second = &stamps;
  }
  return map;
}

std::vector<core::Nanos> token_writes(const mock::AnswerStamps& stamps) {
  std::vector<core::Nanos> writes;
  for (const auto& [t_ns, tokens] : stamps.writes) {
    if (tokens > 0) writes.push_back(t_ns);
  }
  return writes;
}

int64_t tokens_of(const mock::AnswerStamps& stamps) {
  return std::accumulate(stamps.writes.begin(), stamps.writes.end(), int64_t{0},
                         [](int64_t sum, const auto& write) { return sum + write.second; });
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return stats::quantile_linear(values, 0.5);
}

std::string status_counts(const std::vector<RequestRow>& rows) {
  std::map<std::string, int> counts;
  for (const auto& row : rows) ++counts[status_name(row.status)];
  std::string text;
  for (const auto& [name, n] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, name);
  }
  return text.empty() ? "nothing" : text;
}

void judge_statuses(const Expect& expect, const Session& session, Verdict& verdict) {
  const auto& rows = session.rows;
  if (rows.size() != kFaultRequests) {
    verdict.fail(fmt::format("found {} requests, expected {}", rows.size(), kFaultRequests));
  }
  const bool all_ok = expect.status == Status::kOk;
  const int failing = all_ok ? 0 : expect.failing;
  int failed = 0;
  for (const auto& row : rows) {
    if (row.status == Status::kOk) continue;
    ++failed;
    if (row.status != expect.status) {
      verdict.fail(fmt::format("found status {} ({}), expected {}", status_name(row.status),
                               row.error, status_name(expect.status)));
    }
    if (!all_ok && row.http_status.value_or(0) != expect.http) {
      verdict.fail(fmt::format("found http status {}, expected {}", row.http_status.value_or(0),
                               expect.http));
    }
    if (row.error.empty()) verdict.fail("a failure does not say what happened");
  }
  if (failed != failing) {
    verdict.fail(fmt::format("found {} failures, expected {}", failed, failing));
  }
  const auto& metrics = session.run.record.metrics;
  if (metrics.ttft_ms.n.value_or(0) != static_cast<int64_t>(rows.size()) - failed) {
    verdict.fail(fmt::format("found {} latencies from {} completed requests",
                             metrics.ttft_ms.n.value_or(0),
                             static_cast<int64_t>(rows.size()) - failed));
  }
  if (expect.retries >= 0 && metrics.retries != expect.retries) {
    verdict.fail(fmt::format("found {} resends, expected {}", metrics.retries, expect.retries));
  }
}

/// Tokens, and where they were counted from; for failures too: the server did that work.
void judge_tokens(const Expect& expect, const Session& session, Verdict& verdict) {
  const auto served = by_id(session.served);
  int64_t exact = 0, gaps = 0;
  for (const auto& row : session.rows) {
    const auto at = served.find(row.id);
    const int64_t truth = at == served.end() ? 0 : tokens_of(*at->second);
    const int64_t got = row.output_tokens.value_or(0);
    // A whole JSON document has tokens that are no stream.
    if (got != truth && row.status != Status::kNotStream) {
      verdict.fail(
          fmt::format("request {}: counted {} tokens, {} were served", row.index, got, truth));
    }
    if (row.status != Status::kOk) continue;
    if (row.token_source != expect.source) {
      verdict.fail(fmt::format("counted by {}, expected {}", token_source_name(row.token_source),
                               token_source_name(expect.source)));
    }
    if (expect.thinking && (!row.t_first_output_ns || !row.t_first_token_ns ||
                            *row.t_first_output_ns <= *row.t_first_token_ns)) {
      verdict.fail("the first output is not later than the first token, which was reasoning");
    }
    if (row.tokens_per_event_exact) {
      ++exact;
      gaps += got - row.first_event_tokens;
    }
  }
  const auto& metrics = session.run.record.metrics;
  if (exact > 0 && metrics.itl_basis == "tokens" && metrics.itl_ms.n.value_or(0) != gaps) {
    verdict.fail(
        fmt::format("found {} inter-token latencies, expected {}: one a token after the "
                    "first event",
                    metrics.itl_ms.n.value_or(0), gaps));
  }
  const int64_t ok = metrics.completed.value_or(0);
  if (metrics.bursty_streams != (expect.bursty ? ok : 0)) {
    verdict.fail(fmt::format("flagged {} streams as buffered, expected {}", metrics.bursty_streams,
                             expect.bursty ? ok : 0));
  }
}

void judge_arrivals(const Expect& expect, const Session& session, Verdict& verdict) {
  const auto arrivals = join(session);
  if (arrivals.first.empty()) return;
  for (const auto* errors : {&arrivals.first, &arrivals.last}) {
    if (errors->empty()) continue;
    const double middle = median(*errors);
    const double earliest = *std::min_element(errors->begin(), errors->end());
    if (!verdict.error || std::abs(middle) > std::abs(*verdict.error)) verdict.error = middle;
    if (earliest < -kEarlyMs) {
      verdict.fail(fmt::format("a token is stamped {:.3f} ms before it was written", -earliest));
    }
  }
  verdict.limit = expect.late_ms;
  verdict.unit = "ms";
  if (*verdict.error > expect.late_ms) {
    verdict.fail(fmt::format("tokens are stamped {:.3f} ms late, expected at most {:g} ms",
                             *verdict.error, expect.late_ms));
  }
}

void judge_timeouts(const Session& session, Verdict& verdict) {
  for (const auto& row : session.rows) {
    const bool ttft = row.status == Status::kTimeoutTtft;
    if ((!ttft && row.status != Status::kTimeoutStall) || !row.t_close_ns || !row.t_send_ns) {
      continue;
    }
    const core::Nanos from = ttft ? *row.t_send_ns : row.t_last_token_ns.value_or(*row.t_send_ns);
    const double waited = core::to_ms(*row.t_close_ns - from);
    const double limit = ttft ? kFirstTokenTimeoutMs : kStallTimeoutMs;
    if (waited < limit - 1 || waited > limit + kTimeoutGraceMs) {
      verdict.fail(fmt::format("given up after {:.0f} ms, expected {:.0f} ms", waited, limit));
    }
  }
}

}  // namespace

Arrivals join(const Session& session) {
  Arrivals arrivals;
  const auto served = by_id(session.served);
  size_t matched = 0;
  for (const auto& row : session.rows) {
    const auto at = served.find(row.id);
    if (at == served.end()) {
      ++arrivals.unmatched;
      continue;
    }
    ++matched;
    const auto writes = token_writes(*at->second);
    if (writes.empty() || row.events.empty()) continue;
    arrivals.first.push_back(core::to_ms(row.events.front().t_kernel_ns - writes.front()));
    // Of a failed request the client may have got less than was written.
    if (row.status == Status::kOk) {
      arrivals.last.push_back(core::to_ms(row.events.back().t_kernel_ns - writes.back()));
    }
    if (writes.size() != row.events.size()) {
      ++arrivals.miscounted;
      continue;
    }
    for (size_t i = 1; i < writes.size(); ++i) {
      arrivals.served_gaps.push_back(core::to_ms(writes[i] - writes[i - 1]));
      arrivals.read_gaps.push_back(
          core::to_ms(row.events[i].t_kernel_ns - row.events[i - 1].t_kernel_ns));
    }
  }
  arrivals.unmatched += static_cast<int64_t>(served.size() - matched);
  return arrivals;
}

Verdict judge_fault(const FaultCase& fault, std::string_view summary, const Session& session) {
  Verdict verdict{.name = std::string(fault.fault),
                  .group = "fault",
                  .condition = std::string(summary),
                  .complaint = std::string(fault.complaint)};
  int64_t tokens = 0, writes = 0, counted = 0;
  for (const auto& [id, stamps] : by_id(session.served)) {
    tokens += tokens_of(*stamps);
    writes += static_cast<int64_t>(token_writes(*stamps).size());
  }
  for (const auto& row : session.rows) counted += row.output_tokens.value_or(0);
  verdict.served = fmt::format("{} tokens in {} writes", tokens, writes);
  verdict.measured = fmt::format("{}; {} tokens", status_counts(session.rows), counted);
  judge_statuses(fault.expect, session, verdict);
  judge_tokens(fault.expect, session, verdict);
  judge_arrivals(fault.expect, session, verdict);
  judge_timeouts(session, verdict);
  return verdict;
}

int64_t most_in_flight(const std::vector<mock::AnswerStamps>& served) {
  std::vector<std::pair<core::Nanos, int>> changes;
  for (const auto& stamps : served) {
    if (stamps.writes.empty()) continue;
    changes.emplace_back(stamps.t_received_ns, 1);
    changes.emplace_back(stamps.writes.back().first, -1);
  }
  // At one instant an end comes before a beginning.
  std::sort(changes.begin(), changes.end());
  int64_t now = 0, most = 0;
  for (const auto& [t_ns, change] : changes) most = std::max(most, now += change);
  return most;
}

}  // namespace prony::certify
