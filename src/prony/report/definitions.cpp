#include <array>

#include "prony/report/sections.hpp"

namespace prony::report {
namespace {

struct Definition {
  std::string_view term;
  std::string_view meaning;
};

// docs/metrics.md in one sentence each; the page must be readable without the repository.
constexpr auto kDefinitions = std::to_array<Definition>({
    {"TTFT, time to first token",
     "From handing the first byte of the request to the kernel to the arrival of the first event "
     "that carries a token of any kind. An event that only announces the role is not a token."},
    {"TPOT, time per output token",
     "From the first to the last token, divided by the tokens after the first event. A mean within "
     "one request; its percentiles are over requests. Not defined for a single token."},
    {"ITL, inter-token latency",
     "The gap before each token after the first. An event of k tokens gives k equal gaps if k is "
     "known; its percentiles are over tokens, so long answers weigh more."},
    {"ICL, inter-chunk latency",
     "The gap between successive events that carry tokens, however many each carries. Some tools "
     "print this under the name ITL."},
    {"E2E, end-to-end latency", "From sending to the arrival of the last token."},
    {"intended",
     "Counted from the moment the schedule meant the request to start, so that a client or server "
     "that falls behind cannot hide the waiting it causes."},
    {"window",
     "The part of the run that rates and latencies speak of: requests meant to start inside it. "
     "Tokens count where they arrive."},
    {"output throughput",
     "Output tokens that arrived in the window, by its length; tokens of requests that failed "
     "later "
     "were delivered and count."},
    {"goodput",
     "Requests that met every bound given, by the window. The fraction is of everything attempted: "
     "a failure meets no bound."},
    {"failure",
     "Anything but a 200 with a stream of at least one token, a proper end and no error in it. "
     "Failed requests are in no latency."},
    {"95 % interval",
     "Two order statistics between which the true percentile lies in 95 of 100 such runs, with no "
     "assumption on the shape of the distribution, if the requests are independent and the run is "
     "steady. It does not cover what another day or another host would change."},
    {"send lag", "How much later than intended the client sent a request."},
    {"read lag",
     "From the kernel's receive stamp of a packet to the moment the client looked at it. Latencies "
     "use the kernel's stamp, so this delay is not in them."},
    {"merged event",
     "A token event that was read together with a later one; the kernel keeps one stamp for both, "
     "so its time is an upper bound."},
    {"steal", "Time in which the hypervisor ran something else on our processor."},
    {"valid",
     "None of the checks failed that a run must pass before its numbers are about the system and "
     "not about the client, the host or the schedule."},
});

}  // namespace

void write_definitions(Html& html) {
  html.raw(
      "<details class=\"fold\" id=\"definitions\"><summary>What the terms mean</summary><dl>\n");
  for (const auto& [term, meaning] : kDefinitions) {
    html.raw("<dt>").text(term).raw("</dt><dd>").text(meaning).raw("</dd>\n");
  }
  html.raw("</dl></details>\n");
}

}  // namespace prony::report
