// The sections of the page, in their order; each appends its HTML. Everything a reader needs stands
// in the HTML itself, the script only draws. Thread safety: pure functions on their arguments.
#pragma once
#include <span>
#include <string>

#include "prony/record/record.hpp"
#include "prony/report/figures.hpp"
#include "prony/report/html.hpp"

namespace prony::report {

struct Page {
  const record::Record& record;
  bool has_rows = false;
  Population population;
  Figures figures;
};

// sections_summary.cpp
void write_header(Html& html, const Page& page);
void write_verdict(Html& html, const Page& page);
void write_cards(Html& html, const Page& page);
void write_objectives(Html& html, const Page& page);
/// "emulated h100-sxm", "predicted", "invalid run": what must stand on every card.
void write_tags(Html& html, const record::Record& record);

// sections_latency.cpp
void write_distributions(Html& html, const Page& page);
void write_latency_table(Html& html, const Page& page);
void write_origins(Html& html, const Page& page);
void write_input_scatter(Html& html, const Page& page);
void write_over_time(Html& html, const Page& page);

// sections_list.cpp
void write_stages(Html& html, const Page& page);
void write_turns(Html& html, const Page& page);
void write_requests(Html& html, const Page& page);
void write_telemetry(Html& html, const Page& page);

// sections_requests.cpp
void write_errors(Html& html, const Page& page);
void write_tokens(Html& html, const Page& page);

// sections_facts.cpp
void write_client(Html& html, const Page& page);
void write_workload(Html& html, const Page& page);
void write_system(Html& html, const Page& page);
void write_environment(Html& html, const Page& page);
void write_extra(Html& html, const Page& page);

// definitions.cpp
void write_definitions(Html& html);

}  // namespace prony::report
