#include "prony/record/compat.hpp"

#include <algorithm>

#include "prony/record/row_metrics.hpp"
#include "prony/record/vllm_metrics.hpp"

namespace prony::record {
namespace {

using core::Nanos;

class Report {
 public:
  explicit Report(CompatTool tool) { report_.tool = tool; }
  void single(std::string name, std::string unit, double value, std::string note = "") {
    report_.metrics.push_back({std::move(name), std::move(unit), {{"", value}}, std::move(note)});
  }
  void add(std::string name, std::string unit, std::vector<std::pair<std::string, double>> values,
           std::string note) {
    report_.metrics.push_back(
        {std::move(name), std::move(unit), std::move(values), std::move(note)});
  }
  CompatReport take() { return std::move(report_); }

 private:
  CompatReport report_;
};

// ---- vLLM ----

CompatReport vllm_report(const RowSource& rows, const core::RequestSlo& goodput) {
  const auto m = vllm_metrics(rows, goodput);
  Report out(CompatTool::kVllm);
  out.single("duration", "s", m.duration_s, "the whole run with its drain; ours has a window");
  out.single("request_throughput", "req/s", m.request_throughput, "over the whole duration");
  out.single("output_throughput", "tok/s", m.output_throughput,
             "tokens of successful requests only, over the whole duration");
  out.single("total_token_throughput", "tok/s", m.total_token_throughput);
  out.single("max_output_tokens_per_s", "events/s", m.max_output_tokens_per_s,
             "counts events, not tokens");
  if (m.request_goodput) {
    out.single("request_goodput", "req/s", *m.request_goodput, "over the whole duration");
  }
  const auto latency = [&](const char* name, const Distribution& values, const char* note) {
    out.add(name, "ms",
            {{"mean", values.mean()},
             {"median", values.percentile(50)},
             {"std", values.sd_population()},
             {"p99", values.percentile(99)}},
            note);
  };
  latency("ttft", m.ttft_ms, "to the first event of any kind, role events too (our ttfe_ms)");
  latency("tpot", m.tpot_ms, "divides by N - 1 and ends with the finish event");
  latency("itl", m.itl_ms, "between all events, role and finish events too (near our icl_ms)");
  latency("e2el", m.e2el_ms, "to the finish event, from the send after any wait for a place");
  return out.take();
}

// ---- AIPerf ----

CompatReport aiperf_report(const RowSource& rows, const core::RequestSlo& goodput) {
  Distribution ttft, ttst, latency, itl, icl, per_user, ttfo, length;
  std::optional<Nanos> begin, end;
  int64_t count = 0, good = 0, input = 0, output = 0;
  rows.for_each([&](const RequestRow& row) {
    const auto e2e = e2e_ms(row), first = ttft_ms(row);
    if (row.status != Status::kOk || !e2e || !first) return;
    ++count;
    begin = std::min(begin.value_or(*row.t_send_ns), *row.t_send_ns);
    end = std::max(end.value_or(*row.t_last_token_ns), *row.t_last_token_ns);
    const double n = tokens_of(row);
    input += row.prompt_tokens.value_or(row.input_tokens_asked);
    output += static_cast<int64_t>(n);
    length.add(n);
    ttft.add(*first);
    latency.add(*e2e);
    if (const auto ms = ttfo_ms(row)) ttfo.add(*ms);
    std::vector<double> gaps;
    append_icl_ms(row, gaps);
    if (!gaps.empty()) ttst.add(gaps.front());
    for (const double gap : gaps) icl.add(gap);
    double each = 0;
    if (n >= 2) {
      each = (*e2e - *first) / (n - 1);
      itl.add(each);
      if (each > 0) per_user.add(1000 / each);
    }
    const auto keeps = [](const std::optional<double>& bound, double v) {
      return !bound || v <= *bound;
    };
    good += keeps(goodput.ttft_ms, *first) && keeps(goodput.e2e_ms, *e2e) &&
            keeps(goodput.tpot_ms, each);
  });
  for (auto* values : {&ttft, &ttst, &latency, &itl, &icl, &per_user, &ttfo, &length}) {
    values->finish();
  }
  Report out(CompatTool::kAiperf);
  const auto add = [&](const char* name, const char* unit, const Distribution& v,
                       const char* note) {
    out.add(name, unit,
            {{"avg", v.mean()},
             {"min", v.min()},
             {"max", v.max()},
             {"p99", v.percentile(99)},
             {"p90", v.percentile(90)},
             {"p50", v.percentile(50)},
             {"std", v.sd_population()}},
            note);
  };
  const double duration_s = begin ? core::to_seconds(*end - *begin) : 0;
  const auto rate = [&](int64_t amount) {
    return duration_s > 0 ? static_cast<double>(amount) / duration_s : 0;
  };
  add("time_to_first_token", "ms", ttft, "as ours");
  add("time_to_second_token", "ms", ttst, "gap between the first two events; we have none");
  add("time_to_first_output_token", "ms", ttfo, "as our ttfo_ms");
  add("request_latency", "ms", latency, "as our e2e_ms");
  add("inter_token_latency", "ms", itl, "one mean a request: others' TPOT, divides by N - 1");
  add("inter_chunk_latency", "ms", icl, "as our icl_ms");
  add("output_token_throughput_per_user", "tokens/sec/user", per_user, "1 / that mean");
  add("output_sequence_length", "tokens", length, "as the server counted, reasoning included");
  out.single("benchmark_duration", "sec", duration_s,
             "first send to last token of the successful requests; ours has a window");
  out.single("request_throughput", "requests/sec", rate(count), "over that duration");
  out.single("output_token_throughput", "tokens/sec", rate(output),
             "tokens of successful requests only, over that duration");
  out.single("total_token_throughput", "tokens/sec", rate(input + output));
  if (!goodput.empty()) out.single("goodput", "requests/sec", rate(good), "over that duration");
  return out.take();
}

// ---- GuideLLM ----

// Values with weights: its TPOT counts once a token.
class Weighted {
 public:
  void add(double value, double weight) {
    if (weight > 0) values_.emplace_back(value, weight);
  }
  void finish() {
    std::sort(values_.begin(), values_.end());
    for (const auto& [value, weight] : values_) {
      total_ += weight;
      sum_ += value * weight;
    }
  }
  double mean() const { return total_ > 0 ? sum_ / total_ : 0; }
  // The least value with at least this share of the weight at or below it.
  double quantile(double q) const {
    double below = 0;
    for (const auto& [value, weight] : values_) {
      below += weight;
      if (below >= q * total_ * (1 - 1e-12)) return value;
    }
    return values_.empty() ? 0 : values_.back().first;
  }

 private:
  std::vector<std::pair<double, double>> values_;
  double total_ = 0, sum_ = 0;
};

CompatReport guidellm_report(const RowSource& rows) {
  Weighted ttft, latency, itl, tpot;
  std::optional<Nanos> begin, end;
  int64_t count = 0;
  double input = 0, output = 0;
  rows.for_each([&](const RequestRow& row) {
    const auto first = ttft_ms(row);
    if (row.status != Status::kOk || !first || !row.t_last_token_ns) return;
    ++count;
    const Nanos closed = row.t_close_ns.value_or(row.t_done_ns.value_or(*row.t_last_token_ns));
    begin = std::min(begin.value_or(*row.t_send_ns), *row.t_send_ns);
    end = std::max(end.value_or(closed), closed);
    const double n = tokens_of(row);
    input += row.prompt_tokens.value_or(row.input_tokens_asked);
    output += n;
    ttft.add(*first, 1);
    latency.add(core::to_seconds(closed - *row.t_send_ns), 1);
    const double all_ms = core::to_ms(*row.t_last_token_ns - *row.t_send_ns);
    if (n > 0) tpot.add(all_ms / n, n);
    if (n > 1) itl.add((all_ms - *first) / (n - 1), n - 1);
  });
  for (auto* values : {&ttft, &latency, &itl, &tpot}) values->finish();
  Report out(CompatTool::kGuidellm);
  const auto add = [&](const char* name, const char* unit, const Weighted& v, const char* note) {
    out.add(name, unit,
            {{"mean", v.mean()},
             {"median", v.quantile(0.5)},
             {"p95", v.quantile(0.95)},
             {"p99", v.quantile(0.99)}},
            note);
  };
  add("time_to_first_token_ms", "ms", ttft, "as ours");
  add("inter_token_latency_ms", "ms", itl,
      "one mean a request, weighted by its N - 1 tokens: long answers weigh more");
  add("time_per_output_token_ms", "ms", tpot,
      "contains TTFT: from the send to the last token / N, weighted by N (near our ntpot_ms)");
  add("request_latency", "s", latency, "to the end of the response; ours to the last token");
  const double duration_s = begin ? core::to_seconds(*end - *begin) : 0;
  const auto rate = [&](double amount) { return duration_s > 0 ? amount / duration_s : 0; };
  out.single("requests_per_second", "1/s", rate(static_cast<double>(count)),
             "successful requests, over the whole run; its mean over time, warm-up settings apart");
  out.single("output_tokens_per_second", "tok/s", rate(output), "likewise");
  out.single("tokens_per_second", "tok/s", rate(input + output), "prompt tokens too");
  return out.take();
}

}  // namespace

const char* compat_tool_name(CompatTool tool) {
  switch (tool) {
    case CompatTool::kVllm:
      return "vllm";
    case CompatTool::kAiperf:
      return "aiperf";
    case CompatTool::kGuidellm:
      return "guidellm";
  }
  return "";
}

CompatReport compat_report(CompatTool tool, const RowSource& rows,
                           const core::RequestSlo& goodput) {
  switch (tool) {
    case CompatTool::kVllm:
      return vllm_report(rows, goodput);
    case CompatTool::kAiperf:
      return aiperf_report(rows, goodput);
    case CompatTool::kGuidellm:
      break;
  }
  return guidellm_report(rows);
}

core::Json compat_to_json(const CompatReport& report) {
  core::Json out = core::Json::object();
  for (const auto& metric : report.metrics) {
    auto& json = out[metric.name];
    json["unit"] = metric.unit;
    if (metric.values.size() == 1 && metric.values[0].first.empty()) {
      json["value"] = metric.values[0].second;
    } else {
      for (const auto& [name, value] : metric.values) json[name] = value;
    }
    json["note"] = metric.note;
  }
  return out;
}

}  // namespace prony::record
