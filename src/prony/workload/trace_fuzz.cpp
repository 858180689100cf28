// Fuzzes the readers of foreign files: traces, token columns, schedules, length laws. Whatever is
// accepted must obey the promises of its header; whatever is refused must say so on one line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "prony/core/check.hpp"
#include "prony/workload/lengths.hpp"
#include "prony/workload/schedule.hpp"
#include "prony/workload/trace.hpp"

namespace {

void check_message(const prony::Error& error) {
  PRONY_CHECK(!error.message.empty());
  for (const char c : error.message) PRONY_CHECK(static_cast<unsigned char>(c) >= 0x20);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace prony::workload;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  if (const auto trace = parse_azure_trace(content, "f.csv"); trace) {
    PRONY_CHECK(!trace->rows.empty() && trace->rows.front().t_ns == 0);
    int64_t before_ns = 0;
    for (const TraceRow& row : trace->rows) {
      PRONY_CHECK(row.t_ns >= before_ns && row.input_tokens >= 1 && row.output_tokens >= 1);
      before_ns = row.t_ns;
    }
  } else {
    check_message(trace.error());
  }
  if (const auto schedule = parse_schedule(content, "f.jsonl"); schedule) {
    const auto again = parse_schedule(write_schedule_text(*schedule), "f.jsonl");
    PRONY_CHECK(again.ok() && *again == *schedule);
  } else {
    check_message(schedule.error());
  }
  if (const auto values = parse_token_column(content, "f.csv", "a"); !values) {
    check_message(values.error());
  }
  if (const auto law = LengthLaw::parse(content, "--input-len"); law) {
    PRONY_CHECK(LengthLaw::parse(law->describe(), "--input-len").ok());
  } else {
    check_message(law.error());
  }
  return 0;
}
