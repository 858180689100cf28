#include "prony/report/chrome_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "prony/core/file.hpp"
#include "prony/core/json.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/report/series.hpp"

namespace prony::report {
namespace {

using core::Json;
using core::Nanos;
using record::RequestRow;

constexpr size_t kCounterPointsMax = 2000;

class TraceWriter {
 public:
  TraceWriter(core::AtomicFile& file, Nanos origin_ns) : file_(file), origin_ns_(origin_ns) {}

  void event(std::string_view text) {
    file_.append(first_ ? "\n" : ",\n");
    first_ = false;
    file_.append(text);
  }
  // Microseconds with the ns behind the point; exact, unlike a double of them.
  std::string at(Nanos t_ns) const {
    const Nanos ns = std::max<Nanos>(0, t_ns - origin_ns_);
    return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
  }
  void begin(const RequestRow& row, std::string_view name, Nanos t_ns, const Json& args = Json()) {
    event("{" + common(row, 'b', name, t_ns) +
          (args.is_null() ? "" : ",\"args\":" + core::write_json(args).value()) + "}");
  }
  void end(const RequestRow& row, std::string_view name, Nanos t_ns) {
    event("{" + common(row, 'e', name, t_ns) + "}");
  }
  void slice(const RequestRow& row, std::string_view name, std::optional<Nanos> from,
             std::optional<Nanos> to) {
    if (!from || !to || *to < *from) return;
    begin(row, name, *from);
    end(row, name, *to);
  }
  void counter(std::string_view name, Nanos t_ns, double value) {
    event(fmt::format(R"({{"ph":"C","name":"{}","pid":1,"ts":{},"args":{{"value":{:.6g}}}}})", name,
                      at(t_ns), value));
  }

 private:
  std::string common(const RequestRow& row, char phase, std::string_view name, Nanos t_ns) const {
    return fmt::format(R"("ph":"{}","cat":"request","name":"{}","id":{},"pid":1,"tid":1,"ts":{})",
                       phase, name, row.index, at(t_ns));
  }
  core::AtomicFile& file_;
  Nanos origin_ns_;
  bool first_ = true;
};

void write_request(const RequestRow& row, TraceWriter& trace) {
  Json args;
  args["id"] = row.id;
  args["status"] = record::status_name(row.status);
  args["input_tokens"] = row.prompt_tokens.value_or(row.input_tokens_asked);
  if (row.output_tokens) args["output_tokens"] = *row.output_tokens;
  if (!row.error.empty()) args["error"] = row.error;
  const Nanos end = record::last_stamp_ns(row);
  const char* name = row.status == record::Status::kOk ? "request" : "failed request";
  trace.begin(row, name, row.t_intended_ns, args);
  trace.slice(row, "queue", row.t_intended_ns, row.t_send_ns.value_or(end));
  trace.slice(row, "send", row.t_send_ns, row.t_sent_ns);
  // A request that failed on the way is drawn as far as it came.
  const auto sent = row.t_sent_ns ? row.t_sent_ns : row.t_send_ns;
  trace.slice(row, "prefill", sent, row.t_first_token_ns.value_or(end));
  trace.slice(row, "decode", row.t_first_token_ns, row.t_last_token_ns);
  trace.end(row, name, end);
}

}  // namespace

Result<void> write_chrome_trace(const std::string& path, const record::RowSource& rows,
                                int64_t requests_max) {
  auto file = core::AtomicFile::create(path);
  if (!file) return file.error();
  const auto line = timeline(rows, kCounterPointsMax);
  Nanos origin = line ? line->origin_ns : 0;
  if (!line) {
    rows.for_each([&](const RequestRow& row) { origin = row.t_intended_ns; });
  }
  const int64_t step = std::max<int64_t>(1, (rows.size() + requests_max - 1) / requests_max);
  file->append("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  TraceWriter trace(*file, origin);
  trace.event(R"({"ph":"M","name":"process_name","pid":1,"args":{"name":"prony bench"}})");
  int64_t position = 0, drawn = 0;
  rows.for_each([&](const RequestRow& row) {
    if (position++ % step != 0) return;
    ++drawn;
    write_request(row, trace);
  });
  for (size_t i = 0; line && i < line->in_flight_mean.size(); ++i) {
    const Nanos t = origin + static_cast<Nanos>(static_cast<double>(i) * line->bucket_s * 1e9);
    trace.counter("requests in flight", t, line->in_flight_mean[i]);
    trace.counter("output tokens/s", t, line->output_tokens_per_s[i]);
  }
  file->append(fmt::format("\n],\"otherData\":{{\"requests\":{},\"requests_drawn\":{}}}}}\n",
                           rows.size(), drawn));
  return file->commit();
}

}  // namespace prony::report
