// Random but possible RequestRows, for the property tests of this module and of those that consume
// rows. Every status, merged events, unknown counts, missing stamps and cut streams occur.
// Thread safety: functions of their Rng. Not for production: only tests include this.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "prony/core/rng.hpp"
#include "prony/record/request_row.hpp"

namespace prony::record {

inline core::Nanos random_delay(core::Rng& rng, core::Nanos mean_ns) {
  return static_cast<core::Nanos>(rng.exponential() * static_cast<double>(mean_ns));
}

/// Token-bearing events from `begin` on, and everything of the row that follows from them.
inline void add_random_events(core::Rng& rng, RequestRow& row, core::Nanos begin) {
  row.tokens_per_event_exact = rng.below(2) == 0;
  const bool tokenless_events = row.tokens_per_event_exact && rng.below(5) == 0;
  const auto count = 1 + rng.below(rng.below(4) == 0 ? 1 : 30);
  core::Nanos t = begin;
  int32_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const bool merged = i > 0 && rng.below(10) == 0;
    if (merged) {
      ++row.merged_events;
    } else {
      t += random_delay(rng, 20'000'000);
    }
    int32_t tokens = rng.below(3) == 0 ? static_cast<int32_t>(1 + rng.below(9)) : 1;
    if (tokenless_events && rng.below(3) == 0) tokens = 0;
    if (!row.tokens_per_event_exact && rng.below(2) == 0) tokens = 0;  // unknown
    sum += tokens;
    row.events.push_back({t, t + random_delay(rng, 30'000), tokens});
  }
  row.t_first_token_ns = begin = row.events.front().t_kernel_ns;
  row.t_last_token_ns = t;
  row.first_event_tokens = rng.below(4) == 0 ? 0 : row.events.front().tokens;
  row.t_first_output_ns = row.events[rng.below(count)].t_kernel_ns;
  core::Nanos lag = 0;
  for (const auto& event : row.events) lag = std::max(lag, event.t_user_ns - event.t_kernel_ns);
  row.read_lag_max_ns = lag;
  if (rng.below(8) != 0) {
    const auto least = std::max(sum, static_cast<int32_t>(1));
    row.output_tokens = least + static_cast<int32_t>(rng.below(3) == 0 ? rng.below(4) : 0);
  }
  constexpr TokenSource kSources[] = {TokenSource::kUsage, TokenSource::kTokenIds,
                                      TokenSource::kEventCount};
  row.token_source = row.output_tokens ? kSources[rng.below(3)] : TokenSource::kNone;
}

inline RequestRow random_row(core::Rng& rng, int64_t index, core::Nanos span_ns) {
  RequestRow row;
  row.index = index;
  row.id = "request-" + std::to_string(index);
  row.t_intended_ns = static_cast<core::Nanos>(rng.below(static_cast<uint64_t>(span_ns)));
  if (index % 3 == 0) {
    row.session = index / 6;
    row.turn = static_cast<int32_t>(index / 3 % 2);
  }
  row.input_tokens_asked = static_cast<int32_t>(rng.below(2000));
  row.output_tokens_asked = static_cast<int32_t>(1 + rng.below(60));
  row.status = rng.below(3) != 0 ? Status::kOk : static_cast<Status>(rng.below(16));
  row.retries = rng.below(20) == 0 ? 1 : 0;
  const auto never_sent = row.status == Status::kConnect || row.status == Status::kTimeoutConnect;
  if (!never_sent) {
    if (rng.below(3) == 0) {
      row.t_connect_begin_ns = row.t_intended_ns;
      row.t_connect_ns = row.t_intended_ns + random_delay(rng, 200'000);
    }
    row.t_send_ns = row.t_connect_ns.value_or(row.t_intended_ns) + random_delay(rng, 100'000);
    row.t_sent_ns = *row.t_send_ns + random_delay(rng, 10'000);
  }
  const bool ok = row.status == Status::kOk;
  const bool http_error = row.status == Status::kHttp4xx || row.status == Status::kHttp5xx;
  if (http_error) row.http_status = row.status == Status::kHttp4xx ? 429 : 503;
  const bool streams = ok || (!never_sent && !http_error && row.status != Status::kEmpty &&
                              row.status != Status::kNotStream && rng.below(2) == 0);
  if (streams) {
    row.http_status = 200;
    row.t_headers_ns = *row.t_sent_ns + random_delay(rng, 1'000'000);
    row.t_first_event_ns = *row.t_headers_ns + random_delay(rng, 1'000'000);
    add_random_events(rng, row, *row.t_first_event_ns + random_delay(rng, 50'000'000));
    if (rng.below(10) != 0)
      row.prompt_tokens = row.input_tokens_asked + static_cast<int>(rng.below(2));
    if (ok) {
      row.finish_reason = rng.below(2) == 0 ? "stop" : "length";
      row.t_done_ns = *row.t_last_token_ns + random_delay(rng, 1'000'000);
      row.text = "caf\u00e9 \u2028 \"quoted\" \x01";
      row.reasoning = "because";
    }
  }
  if (!ok) row.error = "it failed: line\n\"two\"";
  const auto last = row.t_done_ns         ? row.t_done_ns
                    : row.t_last_token_ns ? row.t_last_token_ns
                                          : row.t_sent_ns;
  if (last && rng.below(4) != 0) row.t_close_ns = *last + random_delay(rng, 1'000'000);
  return row;
}

inline std::vector<RequestRow> random_rows(core::Rng& rng, int64_t count, core::Nanos span_ns) {
  std::vector<RequestRow> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(random_row(rng, i, span_ns));
  return rows;
}

}  // namespace prony::record
