// CrossCheck: what the server counted during a load against what the client counted, and how much
// of the prompts came from the server's prefix cache against how much the workload implies. Two
// independent counts of one thing: where they disagree, one of them is wrong or somebody else was
// there, and the run's reader must know.
// Thread safety: pure functions.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/telemetry/server_scraper.hpp"

namespace prony::telemetry {

/// The client's own sums over everything it sent from begin() to end() of the scraper.
struct ClientSums {
  int64_t attempted = 0, completed = 0;
  /// Of all requests; nullopt where the count of one that got an answer is unknown.
  std::optional<int64_t> prompt_tokens, output_tokens;
  std::optional<double> ttft_mean_ms;  // of completed requests, from the send
  std::optional<double> e2e_mean_ms;
};

/// Share of prompt tokens that the workload itself makes repeat; nullopt: it cannot be said.
using ImpliedHits = std::optional<double>;

/// Relative difference up to which two counts agree.
inline constexpr double kCountsAgree = 0.02;
/// Beyond it in share of prompt tokens, the cache did something that the workload does not imply.
inline constexpr double kHitsAgree = 0.05;
/// Tokens that a chat template may put before every prompt, which every cache then finds again.
inline constexpr double kTemplateTokensMax = 64;

struct CrossCheck {
  /// {differences, checks[{what, unit, client, server, relative_difference, agree}], prefix_cache}
  core::Json json;
  std::vector<std::string> warnings;  // for the record's validity
};
CrossCheck cross_check(const ServerDifferences& server, const ClientSums& client,
                       ImpliedHits implied_hits);

}  // namespace prony::telemetry
