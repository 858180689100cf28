#include "prony/record/vllm_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "prony/record/row_metrics.hpp"

namespace prony::record {
namespace {

using core::Json;

constexpr std::array kMetrics = {"ttft", "tpot", "itl", "e2el"};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    auto piece = text.substr(begin, end - begin);
    while (piece.starts_with(' ')) piece.erase(0, 1);
    while (piece.ends_with(' ')) piece.pop_back();
    out.push_back(std::move(piece));
    begin = end + 1;
  }
  return out;
}

// "2026-11-30T19:09:34Z" -> "20261130-190934".
std::string date_of(const Record& record) {
  std::string out;
  for (const char c : record.run.started_at) {
    if (c >= '0' && c <= '9') out += c;
    if (c == 'T') out += '-';
  }
  return out;
}

// Python's text of the number: 4.0, 0.5, inf.
std::string rate_text(const Record& record) {
  if (!record.workload.request_rate) return "inf";
  auto text = fmt::format("{}", *record.workload.request_rate);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string label_of(const Record& record) {
  return record.run.label.empty() ? record.system.endpoint_type : record.run.label;
}

void add_statistics(const VllmMetrics& metrics, const VllmResultOptions& options, Json& out) {
  const std::pair<const char*, const Distribution*> all[] = {{"ttft", &metrics.ttft_ms},
                                                             {"tpot", &metrics.tpot_ms},
                                                             {"itl", &metrics.itl_ms},
                                                             {"e2el", &metrics.e2el_ms}};
  for (const auto& [name, values] : all) {
    if (std::find(options.metrics.begin(), options.metrics.end(), name) == options.metrics.end()) {
      continue;
    }
    out[fmt::format("mean_{}_ms", name)] = values->mean();
    out[fmt::format("median_{}_ms", name)] = values->percentile(50);
    out[fmt::format("std_{}_ms", name)] = values->sd_population();
    for (const double p : options.percentiles) {
      out[fmt::format("p{:g}_{}_ms", p, name)] = values->percentile(p);
    }
  }
}

void add_lists(const RowSource& rows, Json& out) {
  for (const char* key : {"input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times",
                          "queue_times", "generated_texts", "errors"}) {
    out[key] = Json::array();
  }
  rows.for_each([&](const RequestRow& row) {
    const bool ok = row.status == Status::kOk;
    out["input_lens"].push_back(row.prompt_tokens.value_or(row.input_tokens_asked));
    out["output_lens"].push_back(vllm_output_len(row));
    out["ttfts"].push_back(vllm_ttft_s(row));
    out["itls"].push_back(vllm_itl_s(row));
    out["latencies"].push_back(vllm_e2el_s(row));
    const auto send = row.t_send_ns.value_or(row.t_intended_ns);
    out["start_times"].push_back(static_cast<double>(send) / 1e9);
    out["queue_times"].push_back(static_cast<double>(send - row.t_intended_ns) / 1e9);
    out["generated_texts"].push_back(row.text);
    out["errors"].push_back(ok ? std::string()
                               : fmt::format("{}: {}", status_name(row.status), row.error));
  });
}

}  // namespace

Result<std::vector<std::string>> parse_percentile_metrics(const std::string& text) {
  auto names = split(text);
  for (const auto& name : names) {
    if (std::find(kMetrics.begin(), kMetrics.end(), name) == kMetrics.end()) {
      return invalid_argument(
          fmt::format("--percentile-metrics: found '{}', expected ttft, tpot, itl or e2el", name));
    }
  }
  return names;
}

Result<std::vector<double>> parse_metric_percentiles(const std::string& text) {
  std::vector<double> out;
  for (const auto& piece : split(text)) {
    double percent = 0;
    const auto [end, code] = std::from_chars(piece.data(), piece.data() + piece.size(), percent);
    if (code != std::errc() || end != piece.data() + piece.size() ||
        !(percent >= 0 && percent <= 100)) {
      return invalid_argument(
          fmt::format("--metric-percentiles: found '{}', expected numbers of 0 to 100", piece));
    }
    out.push_back(percent);
  }
  return out;
}

Json vllm_result(const Record& record, const RowSource& rows, const VllmResultOptions& options) {
  const auto metrics = vllm_metrics(rows, options.goodput);
  Json out;
  out["date"] = date_of(record);
  out["endpoint_type"] = record.system.endpoint_type;
  out["backend"] = record.system.endpoint_type;
  out["label"] = record.run.label.empty() ? Json(nullptr) : Json(record.run.label);
  out["model_id"] = record.system.model;
  out["tokenizer_id"] = record.system.model;
  out["num_prompts"] = record.workload.num_requests;
  for (const auto& [key, value] : record.run.metadata.items()) out[key] = value;
  out["request_rate"] =
      record.workload.request_rate ? Json(*record.workload.request_rate) : Json("inf");
  const auto& details = record.workload.details;
  out["burstiness"] = details.contains("burstiness") ? details.at("burstiness") : Json(1.0);
  out["max_concurrency"] =
      record.workload.max_concurrency ? Json(*record.workload.max_concurrency) : Json(nullptr);
  out["duration"] = metrics.duration_s;
  out["completed"] = metrics.completed;
  out["failed"] = metrics.failed;
  out["total_input_tokens"] = metrics.total_input;
  out["total_output_tokens"] = metrics.total_output;
  out["request_throughput"] = metrics.request_throughput;
  out["request_goodput"] = metrics.request_goodput ? Json(*metrics.request_goodput) : Json(nullptr);
  out["output_throughput"] = metrics.output_throughput;
  out["total_token_throughput"] = metrics.total_token_throughput;
  if (options.detailed) add_lists(rows, out);
  out["max_output_tokens_per_s"] = metrics.max_output_tokens_per_s;
  out["max_concurrent_requests"] = metrics.max_concurrent_requests;
  add_statistics(metrics, options, out);
  return out;
}

std::string vllm_result_filename(const Record& record) {
  const auto& model = record.system.model;
  auto name = fmt::format("{}-{}qps", label_of(record), rate_text(record));
  if (record.workload.max_concurrency) {
    name += fmt::format("-concurrency{}", *record.workload.max_concurrency);
  }
  name += fmt::format("-{}-{}.json", model.substr(model.find_last_of('/') + 1), date_of(record));
  std::replace(name.begin(), name.end(), '/', '_');  // of a label
  return name;
}

}  // namespace prony::record
