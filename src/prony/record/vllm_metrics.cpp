#include "prony/record/vllm_metrics.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "prony/core/math.hpp"
#include "prony/record/row_metrics.hpp"

namespace prony::record {
namespace {

using core::Nanos;

// The instants at which its parser would have seen an event with a choice in it.
std::vector<Nanos> event_instants(const RequestRow& row) {
  std::vector<Nanos> out;
  if (row.t_first_event_ns && row.t_first_token_ns &&
      *row.t_first_event_ns < *row.t_first_token_ns) {
    out.push_back(*row.t_first_event_ns);
  }
  for (const auto& event : row.events) out.push_back(event.t_kernel_ns);
  if (row.events.empty()) {
    for (const auto& t : {row.t_first_token_ns, row.t_last_token_ns}) {
      if (t && (out.empty() || *t > out.back())) out.push_back(*t);
    }
  }
  if (row.t_done_ns && !out.empty() && *row.t_done_ns > out.back()) out.push_back(*row.t_done_ns);
  return out;
}

bool is_good(const core::RequestSlo& slo, double ttft_ms, double tpot_ms, double e2el_ms) {
  const auto keeps = [](const std::optional<double>& bound, double value) {
    return !bound || value <= *bound;
  };
  return keeps(slo.ttft_ms, ttft_ms) && keeps(slo.tpot_ms, tpot_ms) && keeps(slo.e2e_ms, e2el_ms);
}

}  // namespace

double Distribution::sd_population() const {
  const auto n = static_cast<double>(stats_.n.value_or(0));
  return n < 2 ? 0 : stats_.sd.value_or(0) * core::math::sqrt((n - 1) / n);
}

double vllm_ttft_s(const RequestRow& row) {
  const auto ms = ttfe_ms(row);
  return ms ? *ms / 1e3 : 0;
}

double vllm_e2el_s(const RequestRow& row) {
  const auto instants = event_instants(row);
  if (instants.empty() || !row.t_send_ns) return 0;
  return core::to_seconds(instants.back() - *row.t_send_ns);
}

std::vector<double> vllm_itl_s(const RequestRow& row) {
  const auto instants = event_instants(row);
  std::vector<double> gaps;
  for (size_t i = 1; i < instants.size(); ++i) {
    gaps.push_back(core::to_seconds(instants[i] - instants[i - 1]));
  }
  return gaps;
}

int64_t vllm_output_len(const RequestRow& row) {
  return row.status == Status::kOk ? static_cast<int64_t>(tokens_of(row)) : 0;
}

VllmMetrics vllm_metrics(const RowSource& rows, const core::RequestSlo& goodput) {
  VllmMetrics out;
  int64_t good = 0;
  std::optional<Nanos> begin, end, first_send;
  std::vector<std::pair<Nanos, int>> edges;
  rows.for_each([&](const RequestRow& row) {
    begin = std::min(begin.value_or(row.t_intended_ns), row.t_intended_ns);
    end = std::max(end.value_or(row.t_intended_ns), last_stamp_ns(row));
    if (row.status != Status::kOk || !row.t_send_ns) {
      ++out.failed;
      return;
    }
    ++out.completed;
    first_send = std::min(first_send.value_or(*row.t_send_ns), *row.t_send_ns);
    out.total_input += row.prompt_tokens.value_or(row.input_tokens_asked);
    const int64_t length = vllm_output_len(row);
    out.total_output += length;
    const double ttft_ms = 1e3 * vllm_ttft_s(row), e2el_ms = 1e3 * vllm_e2el_s(row);
    double tpot_ms = 0;  // of a single token, for goodput
    if (length > 1) {
      tpot_ms = (e2el_ms - ttft_ms) / static_cast<double>(length - 1);
      out.tpot_ms.add(tpot_ms);
    }
    out.ttft_ms.add(ttft_ms);
    out.e2el_ms.add(e2el_ms);
    for (const double gap : vllm_itl_s(row)) out.itl_ms.add(1e3 * gap);
    good += is_good(goodput, ttft_ms, tpot_ms, e2el_ms);
    edges.emplace_back(*row.t_send_ns, 1);
    edges.emplace_back(*row.t_send_ns + static_cast<Nanos>(std::llround(e2el_ms * 1e6)), -1);
  });
  std::map<int64_t, int64_t> in_second;
  rows.for_each([&](const RequestRow& row) {
    if (row.status != Status::kOk || !row.t_send_ns) return;
    for (const Nanos t : event_instants(row)) ++in_second[(t - *first_send) / 1'000'000'000];
  });
  for (const auto& [second, count] : in_second) {
    out.max_output_tokens_per_s = std::max(out.max_output_tokens_per_s, static_cast<double>(count));
  }
  std::sort(edges.begin(), edges.end());  // at one instant the end comes first
  int64_t now = 0;
  for (const auto& [t, step] : edges) {
    now += step;
    out.max_concurrent_requests = std::max(out.max_concurrent_requests, now);
  }
  if (begin) out.duration_s = core::to_seconds(*end - *begin);
  const auto rate = [&](int64_t amount) {
    return out.duration_s > 0 ? static_cast<double>(amount) / out.duration_s : 0;
  };
  out.request_throughput = rate(out.completed);
  out.output_throughput = rate(out.total_output);
  out.total_token_throughput = rate(out.total_input + out.total_output);
  if (!goodput.empty()) out.request_goodput = rate(good);
  for (auto* values : {&out.ttft_ms, &out.tpot_ms, &out.itl_ms, &out.e2el_ms}) values->finish();
  return out;
}

}  // namespace prony::record
