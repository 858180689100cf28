// What one request measured, derived from its stamps: the definitions of docs/metrics.md, one
// function each, used by the summary, the report and requests.jsonl alike.
// Every function returns nullopt where a stamp or count it needs is missing. None looks at the
// status: leaving out failed requests is the caller's decision.
// Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "prony/core/clock.hpp"
#include "prony/core/slo.hpp"
#include "prony/record/request_row.hpp"

namespace prony::record {

inline constexpr double kNanosPerMs = 1e6;

std::optional<double> ttft_ms(const RequestRow& row);           // first token - send
std::optional<double> ttft_intended_ms(const RequestRow& row);  // first token - intended start
std::optional<double> ttfe_ms(const RequestRow& row);           // first event of any kind - send
std::optional<double> ttfo_ms(const RequestRow& row);           // first non-reasoning text - send
std::optional<double> e2e_ms(const RequestRow& row);            // last token - send
std::optional<double> e2e_intended_ms(const RequestRow& row);   // last token - intended start
std::optional<double> send_lag_ms(const RequestRow& row);       // send - intended start
std::optional<double> connect_ms(const RequestRow& row);        // ready - begin; new ones only

/// (last - first token) / (N - n_first), n_first = tokens of the first event if known, else 1;
/// nullopt where the divisor is below 1.
std::optional<double> tpot_ms(const RequestRow& row);
/// (last - first token) / (N - 1), as vLLM's tool has it.
std::optional<double> tpot_vllm_ms(const RequestRow& row);
/// Prompt tokens (the server's count, else those asked) / TTFT: how fast the prompt was read, where
/// nothing else was in the way.
std::optional<double> prefill_tokens_per_s(const RequestRow& row);
/// e2e / N.
std::optional<double> ntpot_ms(const RequestRow& row);

/// Gaps [ms] between successive token-bearing events, in order.
void append_icl_ms(const RequestRow& row, std::vector<double>& out);
/// Per-token gaps [ms]: a gap before an event of k tokens gives k values gap / k. A gap before an
/// event of no token is carried to the next event with one. Falls back to the event gaps where
/// tokens_per_event_exact is false.
void append_itl_ms(const RequestRow& row, std::vector<double>& out);

/// Tokens that this request brought, whatever its status: output_tokens if known, else the sum over
/// its events, an event of unknown count taken as one token.
double tokens_of(const RequestRow& row);
/// Those of them whose event lies in [begin_ns, end_ns]. They are spread over the events by the
/// events' own counts where exact, else evenly; without stored events evenly over the time from
/// first to last token.
double tokens_in_window(const RequestRow& row, core::Nanos begin_ns, core::Nanos end_ns);
/// Share of the tokens that arrived at one instant, the largest such; nullopt if there are no
/// events.
std::optional<double> largest_burst_share(const RequestRow& row);

/// Every bound of `slo` kept by a request that succeeded; an undefined TPOT (a single token) keeps
/// any bound, an undefined other value keeps none.
bool is_good(const RequestRow& row, const core::RequestSlo& slo);

/// Calls take(t_ns, tokens) for every event that brought tokens; the tokens add up to tokens_of.
/// Spread as in tokens_in_window; without stored events each token by itself.
using TakeTokens = std::function<void(core::Nanos t_ns, double tokens)>;
void visit_tokens(const RequestRow& row, const TakeTokens& take);

/// When it left the server, as far as the client can tell: its end marker (or last token) if it
/// succeeded, else its last stamp.
core::Nanos flight_end_ns(const RequestRow& row);

/// Last stamp of the request of any kind; its intended start if there is none.
core::Nanos last_stamp_ns(const RequestRow& row);

}  // namespace prony::record
