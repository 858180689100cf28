#include <fmt/format.h>

#include "prony/report/format.hpp"
#include "prony/report/sections.hpp"
#include "prony/report/table.hpp"

namespace prony::report {

void write_client(Html& html, const Page& page) {
  const record::Record& record = page.record;
  if (record.source != record::Source::kMeasured) return;
  const auto& m = record.metrics;
  html.raw(
      "<section><h2>The client, measured</h2><p class=\"note\">How far the instrument itself "
      "stood in the way. A run in which this matters is marked invalid.</p>\n");
  {
    FactTable table(html);
    table.add_latency("send lag, sent later than intended", m.send_lag_ms);
    table.add_latency("read lag, kernel stamp to our own", m.read_lag_ms);
    std::string merged =
        fmt::format("{} of {}", format_count(m.merged_events), format_count(m.token_events));
    if (m.token_events > 0) {
      merged += " (" +
                format_percent(static_cast<double>(m.merged_events) /
                               static_cast<double>(m.token_events)) +
                ")";
    }
    table.add("token events that shared a read with a later one", merged);
    table.add("resends on dead connections", format_count(m.retries));
    if (m.requested_rate)
      table.add("rate asked for", format_setting(*m.requested_rate) + " requests/s");
    table.add("rate sent", m.sent_rate, "requests/s");
    table.add_percent("CPU time stolen by the hypervisor", record.environment.steal_fraction);
    if (!record.environment.steal_fraction)
      table.add("CPU time stolen by the hypervisor", "not known");
    core::Json rest = record.client;
    if (rest.is_object()) {  // what the rows above say already
      for (const char* key : {"token_events", "merged_events", "merged_fraction", "read_lag_ms"}) {
        rest.erase(key);
      }
    }
    table.add_json(rest);
  }
  html.raw("</section>\n");
}

void write_workload(Html& html, const Page& page) {
  const auto& w = page.record.workload;
  const auto& m = page.record.metrics;
  html.raw("<section><h2>Workload</h2>\n");
  {
    FactTable table(html);
    table.add("what", w.description);
    table.add("data set", w.dataset);
    table.add("arrivals", w.arrival);
    table.add("request rate", w.request_rate ? format_setting(*w.request_rate) + " requests/s"
                                             : std::string("unlimited"));
    table.add("concurrency cap",
              w.max_concurrency ? format_count(*w.max_concurrency) : std::string("none"));
    table.add("requests in the schedule", format_count(w.num_requests));
    table.add("seed", std::to_string(w.seed));
    table.add_json(w.details);
    table.add("intended rate", m.intended_rate, "requests/s");
    table.add("in flight, mean", m.concurrency_mean, "requests");
    if (m.concurrency_max)
      table.add("in flight, peak", format_count(*m.concurrency_max) + " requests");
    if (m.window_s) table.add("window", format_seconds(*m.window_s));
    if (m.duration_s) table.add("whole run", format_seconds(*m.duration_s));
    table.add("steady", !m.steady ? "too few requests to tell" : *m.steady ? "yes" : "no");
  }
  html.raw("</section>\n");
}

void write_system(Html& html, const Page& page) {
  const record::Record& record = page.record;
  html.raw("<section><h2>System under test</h2>\n");
  {
    FactTable table(html);
    table.add("kind", record::system_kind_name(record.system.kind));
    table.add("model", record.system.model);
    table.add("endpoint", record.system.endpoint);
    table.add("protocol", record.system.endpoint_type);
    table.add("server", record.system.server);
    table.add("device", record.system.device);
    table.add_json(record.system.details);
  }
  html.raw("</section>\n");
}

void write_environment(Html& html, const Page& page) {
  const auto& e = page.record.environment;
  const auto& run = page.record.run;
  html.raw("<section><h2>Environment");
  if (page.record.source == record::Source::kMeasured) html.raw(" of the client");
  html.raw("</h2>\n");
  {
    FactTable table(html);
    table.add("processor", e.cpu);
    table.add("cores usable", format_count(e.cores));
    table.add("memory", format_bytes(static_cast<double>(e.memory_bytes)));
    table.add("kernel", e.kernel);
    table.add("load average at the start", format_fixed(e.load_average, 2));
    table.add_percent("CPU time stolen during the run", e.steal_fraction);
    core::Json gpus = core::Json::object();
    if (!e.gpus.empty()) gpus["gpu"] = e.gpus;
    table.add_json(gpus);
    table.add("prony", fmt::format("{}, commit {}", e.version, e.commit));
    table.add("compiler", e.compiler);
    table.add("started", run.started_at);
    std::string command;
    for (const auto& word : run.command) command += (command.empty() ? "" : " ") + word;
    table.add("command", command);
    table.add_json(run.metadata);
  }
  html.raw("</section>\n");
}

void write_extra(Html& html, const Page& page) {
  const record::Record& record = page.record;
  const auto section = [&](Markup title, const core::Json& json) {
    if (!json.is_object() || json.empty()) return;
    html.raw("<section><h2>").raw(title).raw("</h2>\n");
    {
      FactTable table(html);
      table.add_json(json);
    }
    html.raw("</section>\n");
  };
  section("Prediction", record.prediction);
  section("Simulation", record.simulation);
  section("Telemetry", record.telemetry);
}

}  // namespace prony::report
