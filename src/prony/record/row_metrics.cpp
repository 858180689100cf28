#include "prony/record/row_metrics.hpp"

#include <algorithm>

namespace prony::record {
namespace {

using core::Nanos;

std::optional<double> difference_ms(const std::optional<Nanos>& end,
                                    const std::optional<Nanos>& begin) {
  if (!end || !begin) return std::nullopt;
  return core::to_ms(*end - *begin);
}

// Time from first to last token over a number of tokens; nullopt for less than one.
std::optional<double> decode_ms_per(const RequestRow& row, int64_t tokens) {
  const auto span = difference_ms(row.t_last_token_ns, row.t_first_token_ns);
  if (!span || tokens < 1) return std::nullopt;
  return *span / static_cast<double>(tokens);
}

// Relative number of tokens of an event: its count where all are known, else 1.
double weight_of(const RequestRow& row, const TokenEvent& event) {
  return row.tokens_per_event_exact ? static_cast<double>(event.tokens) : 1.0;
}

double total_weight(const RequestRow& row) {
  double sum = 0;
  for (const auto& event : row.events) sum += weight_of(row, event);
  return sum;
}

// Without stored events: the first event's tokens at the first stamp, the rest at even distances.
double spread_tokens_in_window(const RequestRow& row, int64_t n, Nanos begin_ns, Nanos end_ns) {
  const auto inside = [&](Nanos t) { return begin_ns <= t && t <= end_ns; };
  if (!row.t_first_token_ns || !row.t_last_token_ns) {
    return inside(last_stamp_ns(row)) ? static_cast<double>(n) : 0.0;
  }
  const int64_t first = std::clamp<int64_t>(row.first_event_tokens, 1, std::max<int64_t>(1, n));
  const int64_t rest = n - first;
  int64_t count = inside(*row.t_first_token_ns) ? first : 0;
  const double step = rest < 1 ? 0
                               : static_cast<double>(*row.t_last_token_ns - *row.t_first_token_ns) /
                                     static_cast<double>(rest);
  for (int64_t i = 1; i <= rest; ++i) {
    count += inside(*row.t_first_token_ns + static_cast<Nanos>(step * static_cast<double>(i)));
  }
  return static_cast<double>(count);
}

}  // namespace

std::optional<double> ttft_ms(const RequestRow& row) {
  return difference_ms(row.t_first_token_ns, row.t_send_ns);
}
std::optional<double> ttft_intended_ms(const RequestRow& row) {
  return difference_ms(row.t_first_token_ns, row.t_intended_ns);
}
std::optional<double> ttfe_ms(const RequestRow& row) {
  return difference_ms(row.t_first_event_ns, row.t_send_ns);
}
std::optional<double> ttfo_ms(const RequestRow& row) {
  return difference_ms(row.t_first_output_ns, row.t_send_ns);
}
std::optional<double> e2e_ms(const RequestRow& row) {
  return difference_ms(row.t_last_token_ns, row.t_send_ns);
}
std::optional<double> e2e_intended_ms(const RequestRow& row) {
  return difference_ms(row.t_last_token_ns, row.t_intended_ns);
}
std::optional<double> send_lag_ms(const RequestRow& row) {
  return difference_ms(row.t_send_ns, row.t_intended_ns);
}
std::optional<double> connect_ms(const RequestRow& row) {
  return difference_ms(row.t_connect_ns, row.t_connect_begin_ns);
}

std::optional<double> tpot_ms(const RequestRow& row) {
  if (!row.output_tokens) return std::nullopt;
  const int64_t first = row.first_event_tokens > 0 ? row.first_event_tokens : 1;
  return decode_ms_per(row, *row.output_tokens - first);
}
std::optional<double> tpot_vllm_ms(const RequestRow& row) {
  if (!row.output_tokens) return std::nullopt;
  return decode_ms_per(row, int64_t{*row.output_tokens} - 1);
}
std::optional<double> prefill_tokens_per_s(const RequestRow& row) {
  const auto ttft = ttft_ms(row);
  if (!ttft || !(*ttft > 0)) return std::nullopt;
  return row.prompt_tokens.value_or(row.input_tokens_asked) / *ttft * 1000;
}
std::optional<double> ntpot_ms(const RequestRow& row) {
  const auto e2e = e2e_ms(row);
  if (!e2e || !row.output_tokens || *row.output_tokens < 1) return std::nullopt;
  return *e2e / *row.output_tokens;
}

void append_icl_ms(const RequestRow& row, std::vector<double>& out) {
  for (size_t i = 1; i < row.events.size(); ++i) {
    const Nanos gap = row.events[i].t_kernel_ns - row.events[i - 1].t_kernel_ns;
    out.push_back(core::to_ms(gap));
  }
}

void append_itl_ms(const RequestRow& row, std::vector<double>& out) {
  if (!row.tokens_per_event_exact) {
    append_icl_ms(row, out);
    return;
  }
  // The clock starts at the first event that brought a token.
  size_t first = 0;
  while (first < row.events.size() && row.events[first].tokens < 1) ++first;
  if (first == row.events.size()) return;
  Nanos since = row.events[first].t_kernel_ns;
  for (size_t i = first + 1; i < row.events.size(); ++i) {
    const auto& event = row.events[i];
    if (event.tokens < 1) continue;
    const double gap = core::to_ms(event.t_kernel_ns - since);
    out.insert(out.end(), static_cast<size_t>(event.tokens), gap / event.tokens);
    since = event.t_kernel_ns;
  }
}

double tokens_of(const RequestRow& row) {
  if (row.output_tokens) return *row.output_tokens;
  double sum = 0;
  for (const auto& event : row.events) sum += std::max(1, event.tokens);
  return sum;
}

double tokens_in_window(const RequestRow& row, Nanos begin_ns, Nanos end_ns) {
  const double n = tokens_of(row);
  if (n <= 0) return 0;
  if (row.events.empty()) {
    return spread_tokens_in_window(row, static_cast<int64_t>(n), begin_ns, end_ns);
  }
  const double all = total_weight(row);
  const bool weightless = !(all > 0);  // events of which each is known to hold no token
  double inside = 0;
  for (const auto& event : row.events) {
    if (begin_ns > event.t_kernel_ns || event.t_kernel_ns > end_ns) continue;
    inside += weightless ? 1 : weight_of(row, event);
  }
  const double total = weightless ? static_cast<double>(row.events.size()) : all;
  return inside == total ? n : n * (inside / total);
}

void visit_tokens(const RequestRow& row, const TakeTokens& take) {
  const double n = tokens_of(row);
  if (n <= 0) return;
  if (row.events.empty()) {
    if (!row.t_first_token_ns || !row.t_last_token_ns) {
      take(last_stamp_ns(row), n);
      return;
    }
    const double first = std::clamp(static_cast<double>(row.first_event_tokens), 1.0, n);
    take(*row.t_first_token_ns, first);
    const double rest = n - first;
    const auto span = static_cast<double>(*row.t_last_token_ns - *row.t_first_token_ns);
    for (double i = 1; i <= rest; ++i) {
      take(*row.t_first_token_ns + static_cast<Nanos>(span / rest * i), 1);
    }
    return;
  }
  const double all = total_weight(row);
  const bool weightless = !(all > 0);
  const double total = weightless ? static_cast<double>(row.events.size()) : all;
  for (const auto& event : row.events) {
    const double weight = weightless ? 1 : weight_of(row, event);
    if (weight > 0) take(event.t_kernel_ns, n * weight / total);
  }
}

Nanos flight_end_ns(const RequestRow& row) {
  if (row.status != Status::kOk) return last_stamp_ns(row);
  return row.t_done_ns.value_or(row.t_last_token_ns.value_or(last_stamp_ns(row)));
}

std::optional<double> largest_burst_share(const RequestRow& row) {
  const double total = total_weight(row);
  if (!(total > 0)) return std::nullopt;
  double largest = 0, here = 0;
  for (size_t i = 0; i < row.events.size(); ++i) {
    const bool same = i > 0 && row.events[i].t_kernel_ns == row.events[i - 1].t_kernel_ns;
    here = (same ? here : 0) + weight_of(row, row.events[i]);
    largest = std::max(largest, here);
  }
  return largest / total;
}

bool is_good(const RequestRow& row, const core::RequestSlo& slo) {
  if (row.status != Status::kOk) return false;
  const auto keeps = [](const std::optional<double>& bound, const std::optional<double>& value) {
    return !bound || (value && *value <= *bound);
  };
  const auto tpot = tpot_ms(row);
  return keeps(slo.ttft_ms, ttft_ms(row)) && (!tpot || keeps(slo.tpot_ms, tpot)) &&
         keeps(slo.e2e_ms, e2e_ms(row)) && keeps(slo.ttft_intended_ms, ttft_intended_ms(row)) &&
         keeps(slo.e2e_intended_ms, e2e_intended_ms(row));
}

Nanos last_stamp_ns(const RequestRow& row) {
  Nanos last = row.t_intended_ns;
  for (const auto& stamp :
       {row.t_connect_begin_ns, row.t_connect_ns, row.t_send_ns, row.t_sent_ns, row.t_headers_ns,
        row.t_first_event_ns, row.t_first_token_ns, row.t_first_output_ns, row.t_last_token_ns,
        row.t_done_ns, row.t_close_ns}) {
    if (stamp) last = std::max(last, *stamp);
  }
  return row.events.empty() ? last : std::max(last, row.events.back().t_kernel_ns);
}

}  // namespace prony::record
