// RunTelemetry: the telemetry of one measured run: where the server's /metrics are, when the
// interval begins and ends, what the client's own sums were, and what the workload implies for a
// prefix cache. The sampling itself is telemetry::Session.
// Thread safety: one thread.
#pragma once
#include <memory>
#include <span>

#include "prony/core/result.hpp"
#include "prony/load/bench_options.hpp"
#include "prony/load/endpoint.hpp"
#include "prony/record/record.hpp"
#include "prony/record/request_row.hpp"
#include "prony/telemetry/session.hpp"
#include "prony/workload/schedule.hpp"

namespace prony::load {

/// Sums over what was really sent. A count is nullopt if one completed request lacks it.
class SumsOfRows {
 public:
  void add(const record::RequestRow& row);
  telemetry::ClientSums sums() const;

 private:
  telemetry::ClientSums sums_{.prompt_tokens = 0, .output_tokens = 0};
  double ttft_ms_ = 0, e2e_ms_ = 0;
  int64_t ttfts_ = 0, e2es_ = 0;
};

/// Share of the prompt tokens of the first `sent` entries that an earlier one began with too;
/// nullopt where the prompts are not ours (their texts may share anything) or depend on answers.
telemetry::ImpliedHits implied_hits(const BenchOptions& options, const workload::Schedule& schedule,
                                    int64_t sent);

/// Error: kInvalidArgument naming the flag.
Result<void> check_telemetry(const BenchOptions& options);

/// Opens the sources; the options are checked. Error: kEnvironment if the user named a URL that
/// does not answer.
Result<std::unique_ptr<telemetry::Session>> open_telemetry(const BenchOptions& options,
                                                           const Endpoint& endpoint);

/// Puts the section, the GPUs and the warnings into the record.
void add_telemetry(const telemetry::Session& session, const telemetry::ClientSums& sums,
                   telemetry::ImpliedHits implied, record::Record& record);

}  // namespace prony::load
