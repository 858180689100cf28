// Writes the pages that report.mjs opens in a browser: report_pages DIR. Each is one kind of run
// that a reader may meet; the hostile one carries every string that has ever become markup.
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <string>

#include "prony/core/file.hpp"
#include "prony/report/report.hpp"
#include "prony/report/sample_run.hpp"

namespace {

using prony::Result;
using namespace prony::report;

SampleRun valid_run() {
  SampleRun run = sample_run({.requests = 1200});
  const auto begin = run.rows.front().t_intended_ns;
  auto& series = run.record.telemetry["series"] = prony::core::Json::array();
  for (const char* name : {"power", "busy"}) {
    prony::core::Json t, values;
    for (int i = 0; i < 40; ++i) {
      t.push_back(begin + int64_t{i} * 500'000'000);
      values.push_back(200 + 7 * (i % 9));
    }
    series.push_back({{"name", name}, {"unit", "W"}, {"source", "gpu 0"}, {"t_ns", t},
                      {"values", values}});
  }
  run.record.telemetry["notes"] = {"sampled twice a second"};
  run.record.slo = {{"text", "ttft_p99<=500ms,ttft_p999<=1s"},
                    {"met", nullptr},
                    {"terms",
                     {{{"text", "ttft_p99<=500ms"}, {"value", 187.4}, {"met", true}},
                      {{"text", "ttft_p999<=1s"}, {"value", nullptr}, {"met", nullptr}}}}};
  return run;
}

SampleRun invalid_run() {
  SampleRun run = sample_run({.requests = 400, .failed_fraction = 0.08, .tokens_per_event = 4});
  auto& r = run.record;
  r.validity.refuse("send lag p99 of 14.2 ms could move ttft p99 by more than 1 ms");
  r.validity.refuse("the event loop was 96 % busy, more than 90 %");
  r.validity.warnings.push_back("token counts come from events: the server sent no usage");
  r.run.interrupted = true;
  return run;
}

SampleRun emulated_run() {
  SampleRun run = sample_run({.requests = 400, .events = false});
  run.record.system.kind = prony::record::SystemKind::kEmulated;
  run.record.system.server = "prony 0.1.0";
  return run;
}

SampleRun hostile_run() {
  SampleRun run = sample_run({.requests = 120, .failed_fraction = 0.2});
  const std::string attack =
      "</script><script>window.pwned=1</script><img src=x onerror=\"window.pwned=2\">"
      "\"' onmouseover='window.pwned=3' <!-- \xE2\x80\xA8\xE2\x80\xA9 \xFF\xC0\xAF \xE2\x80\xAE"
      "txet {{7*7}} javascript:window.pwned=4 ]]>";
  for (auto& row : run.rows) {
    if (!row.error.empty()) row.error = attack;
    row.id = row.finish_reason = attack;
  }
  auto& r = run.record;
  r.system.model = attack;
  r.system.endpoint = "http://127.0.0.1/" + attack;
  r.system.server = r.system.device = r.system.endpoint_type = attack;
  r.system.details[attack] = attack;
  r.workload.description = r.workload.dataset = r.workload.arrival = attack;
  r.workload.details[attack] = {attack, {{attack, attack}}};
  r.environment.cpu = r.environment.kernel = r.environment.commit = r.environment.version = attack;
  r.environment.gpus = {{{"name", attack}}};
  r.run.label = r.run.started_at = attack;
  r.run.command = {attack};
  r.run.metadata[attack] = attack;
  r.client[attack] = attack;
  r.slo = {{"text", attack},
           {"met", false},
           {"terms", {{{"text", attack}, {"value", 1}, {"met", false}}}}};
  r.telemetry[attack] = attack;
  r.telemetry["notes"] = {attack};
  const auto t = run.rows.front().t_intended_ns;
  r.telemetry["series"] = {attack,
                           {{"name", attack},
                            {"unit", attack},
                            {"source", attack},
                            {"t_ns", {t, t + 1'000'000'000, attack}},
                            {"values", {1, nullptr, 2}}}};
  r.metrics.goodput_slo = r.metrics.approximate = r.metrics.itl_basis = attack;
  r.metrics.window_rule = attack;
  r.metrics.errors[attack] = 1;
  r.metrics.http_errors[attack] = 1;
  r.metrics.token_sources[attack] = 1;
  r.validity.refuse(attack);
  r.validity.warnings.push_back(attack);
  return run;
}

SampleRun predicted_run() {
  SampleRun run = sample_run({.requests = 50});
  auto& r = run.record;
  run.rows.clear();
  r.source = prony::record::Source::kPredicted;
  r.system.kind = prony::record::SystemKind::kDeployment;
  r.system.endpoint.clear();
  r.client = nullptr;
  prony::record::Metrics m;
  m.ttft_ms.mean = m.ttft_ms.p50 = 42.0;
  m.tpot_ms.mean = m.tpot_ms.p50 = 8.1;
  m.e2e_ms.mean = 560;
  m.output_throughput = 2380;
  r.metrics = m;
  r.prediction = {{"bottleneck", "hbm bandwidth"}, {"kv_cache_bytes", 21474836480}, {"tp", 1}};
  return run;
}

struct PageSource {
  const char* name;
  std::function<SampleRun()> make;
};
const PageSource kPages[] = {
    {"valid", valid_run},
    {"clean", [] { return sample_run({.requests = 60, .failed_fraction = 0}); }},
    {"invalid", invalid_run},
    {"emulated", emulated_run},
    {"predicted", predicted_run},
    {"hostile", hostile_run},
    {"single", [] { return sample_run({.requests = 1, .failed_fraction = 0}); }},
    {"all_failed", [] { return sample_run({.requests = 10, .failed_fraction = 2}); }},
    {"big", [] { return sample_run({.requests = 100'000, .rate_per_s = 400}); }},
};

Result<void> write_all(const std::string& folder) {
  if (auto made = prony::core::make_directories(folder); !made) return made;
  for (const auto& page : kPages) {
    const SampleRun run = page.make();
    const auto path = fmt::format("{}/{}.html", folder, page.name);
    const prony::record::RowSpan rows(run.rows);
    if (auto done = write_html(path, run.record, rows, {run.summary}); !done) return done;
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: report_pages DIR\n", stderr);
    return 2;
  }
  if (const auto done = write_all(argv[1]); !done) {
    std::fputs((done.error().message + "\n").c_str(), stderr);
    return 1;
  }
  return 0;
}
