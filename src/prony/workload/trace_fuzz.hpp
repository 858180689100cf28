// Test helper: every reader of foreign text on one input. Whatever is accepted must obey the
// promises of its header; whatever is refused must say so on one line. Aborts otherwise.
// Thread safety: pure function.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "prony/core/check.hpp"
#include "prony/workload/lengths.hpp"
#include "prony/workload/rate_curve.hpp"
#include "prony/workload/schedule.hpp"
#include "prony/workload/servegen.hpp"
#include "prony/workload/sharegpt.hpp"
#include "prony/workload/time_law.hpp"
#include "prony/workload/trace.hpp"
#include "prony/workload/trace_formats.hpp"
#include "prony/workload/trace_table.hpp"

namespace prony::workload {

inline int check_refusal(const Error& error) {
  PRONY_CHECK(!error.message.empty());
  for (const char c : error.message) PRONY_CHECK(static_cast<unsigned char>(c) >= 0x20);
  return 0;
}

inline int check_trace(const Result<Trace>& trace) {
  if (!trace) return check_refusal(trace.error());
  PRONY_CHECK(!trace->rows.empty() && trace->rows.front().t_ns == 0);
  const TraceRow* before = nullptr;
  for (const TraceRow& row : trace->rows) {
    PRONY_CHECK(row.input_tokens >= 1 && row.output_tokens >= 1);
    PRONY_CHECK(row.input_tokens <= kTokensMax && row.output_tokens <= kTokensMax);
    PRONY_CHECK(trace->has_times || row.t_ns == 0);
    PRONY_CHECK((row.session >= 0) == trace->has_sessions());
    PRONY_CHECK(row.block_count == 0 || trace->block_tokens > 0);
    PRONY_CHECK(trace->blocks_of(row).size() == static_cast<size_t>(row.block_count));
    if (before != nullptr) {
      PRONY_CHECK(row.t_ns >= before->t_ns);
      const bool follows = row.session >= 0 && row.session == before->session;
      PRONY_CHECK(row.turn == (follows ? before->turn + 1 : 0));
    }
    before = &row;
  }
  return 1;
}

/// How many readers accepted the input.
inline int read_everything(std::string_view content) {
  int accepted = check_trace(parse_azure_trace(content, "f.csv")) +
                 check_trace(parse_mooncake_trace(content, "f.jsonl")) +
                 check_trace(parse_burstgpt_trace(content, "f.csv")) +
                 check_trace(parse_sharegpt(content, "f.json", nullptr));
  for (const char* text : {"input=a,output=b", "input=a,output=b,time=t:ms",
                           "input=a,output=b,time=t:date", "input=a,output=b,session=s"}) {
    const auto map = parse_column_map(text);
    accepted += check_trace(parse_csv_trace(content, "f.csv", *map)) +
                check_trace(parse_jsonl_trace(content, "f.jsonl", *map));
  }
  // One input for both tables of ServeGen, cut at a form feed.
  const auto cut = content.find('\f');
  const auto mix =
      parse_servegen(content.substr(0, cut), "f_arrivals.csv",
                     cut == std::string_view::npos ? std::string_view() : content.substr(cut + 1),
                     "f_lengths.csv");
  if (mix) {
    ++accepted;
    if (const auto drawn = draw_servegen(*mix, 1, 0, 1); drawn) {
      for (const auto& row : drawn->rows) PRONY_CHECK(row.t_ns >= 0 && row.t_ns <= 1'000'000'000);
    } else {
      check_refusal(drawn.error());
    }
  } else {
    check_refusal(mix.error());
  }
  if (const auto schedule = parse_schedule(content, "f.jsonl"); schedule) {
    ++accepted;
    const auto again = parse_schedule(write_schedule_text(*schedule), "f.jsonl");
    PRONY_CHECK(again.ok() && *again == *schedule);
  } else {
    check_refusal(schedule.error());
  }
  if (const auto values = parse_token_column(content, "f.csv", "a"); !values) {
    check_refusal(values.error());
  }
  if (const auto law = LengthLaw::parse(content, "--input-len"); law) {
    ++accepted;
    PRONY_CHECK(LengthLaw::parse(law->describe(), "--input-len").ok());
  } else {
    check_refusal(law.error());
  }
  if (const auto law = TimeLaw::parse(content, "--think-time"); law) {
    ++accepted;
  } else {
    check_refusal(law.error());
  }
  if (const auto map = parse_column_map(content); !map) check_refusal(map.error());
  for (const auto& curve : {RateCurve::stages(content), RateCurve::on_off(4, content),
                            RateCurve::diurnal(4, content)}) {
    if (!curve) {
      check_refusal(curve.error());
      continue;
    }
    ++accepted;
    const double total = curve->mean_per_s() * curve->duration_s();
    PRONY_CHECK(total > 0 && curve->instant(total * 0.5) <= curve->duration_s());
  }
  return accepted;
}

}  // namespace prony::workload
